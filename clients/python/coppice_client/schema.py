"""The documents of the API. Members that may be absent are in the second class of two."""
# Written by tools/generate.py from docs/openapi.json. Do not edit.
from __future__ import annotations

from typing import Any, Literal, TypedDict


class _AccessDoc(TypedDict):
    readOnly: bool
    """the server refuses every write, with any token"""
    rights: list[str]
    """those of read, write, delete, erase, hold and issue (of tokens) that it has"""
    tenant: str
    """the tenant of the path; empty: none"""


class AccessDoc(_AccessDoc, total=False):
    meta: dict[str, str]
    """only sessions with this value in their metadata"""
    session: str
    """only this session"""


class _AmendBody(TypedDict):
    entry: str


class AmendBody(_AmendBody, total=False):
    message: Any
    """or an entry of its type; null = as it was appended"""


class _BlameList(TypedDict):
    changes: list[Change]
    """newest first"""


class BlameList(_BlameList, total=False):
    next: str
    """after of the older ones, also of an empty page; absent at the end"""


class _Branch(TypedDict):
    head: str | None
    """null: the next entry becomes a root"""
    name: str


class Branch(_Branch, total=False):
    at: str
    """the nearest ancestor of the head that is in the list, if the head is not"""
    title: str
    """what people read in place of a name that was made"""


class _BranchBody(TypedDict):
    entry: str
    """the entry after which to go on; empty = before the first"""


class BranchBody(_BranchBody, total=False):
    name: str
    """of the new branch"""
    summary: str
    """of the path that is left"""


class BranchList(TypedDict):
    branches: list[Branch]


_Bucket = TypedDict("_Bucket", {
    "count": "int",
    "forks": "int",
    "from": "int",
    "indent": "int",
    "labels": "int",
    "onPath": "int",
})


class Bucket(_Bucket, total=False):
    failed: int
    """entries that failed whose row, or that of the nearest ancestor, is in it"""
    head: bool
    """the row of the head, or of its nearest ancestor that has one, is in it"""
    hits: int
    """with mark: rows whose entries contain its words"""


class _Change(TypedDict):
    branch: str
    commit: str
    """its id"""
    entries: int
    """number of entries that it made durable"""
    epoch: int
    head: str | None
    """the entry from which the next one grew"""
    reason: str
    seq: int
    """number of the commit; 0 is the creation"""
    snapshot: str | None
    """snapshot that was taken of the state before the commit"""
    time: str
    value: Any
    """from this commit on; absent = there was none"""
    writer: str


class Change(_Change, total=False):
    kept: str
    """the branch that was kept"""
    key: str
    """idempotency key"""
    stateLost: bool
    """its state was lost, and no repair brought it back"""


class _Commit(TypedDict):
    branch: str
    commit: str
    """its id"""
    entries: int
    """number of entries that it made durable"""
    epoch: int
    head: str | None
    """the entry from which the next one grew"""
    reason: str
    seq: int
    """number of the commit; 0 is the creation"""
    snapshot: str | None
    """snapshot that was taken of the state before the commit"""
    time: str
    writer: str


class Commit(_Commit, total=False):
    kept: str
    """the branch that was kept"""
    key: str
    """idempotency key"""
    stateLost: bool
    """its state was lost, and no repair brought it back"""


class _CommitList(TypedDict):
    commits: list[Commit]
    """newest first"""


class CommitList(_CommitList, total=False):
    error: Problem
    """why the list is cut short after its first item"""
    next: str
    """after of the older ones; absent at the end"""
    prev: str
    """before of the newer ones"""


class _Committed(TypedDict):
    branch: str
    """the branch of that head"""
    commit: str
    """id of that commit"""
    entries: list[str]
    """ids of the entries that were stored, in their order"""
    head: str | None
    """the entry from which the next one grows that is made on this commit"""
    io: IO
    """requests to the backend"""
    seq: int
    """number of the commit that contains them"""


class Committed(_Committed, total=False):
    created: bool
    """the commit created the session; only over HTTP"""
    kept: str
    """the branch of a commit that lost to another writer"""
    known: list[str]
    """of these, those that the session had before"""
    left: str
    """the branch of the line that a commit from an earlier entry left"""
    repeated: bool
    """a commit with this key existed, and nothing was stored"""
    warnings: list[str]
    """soft limits that were passed"""


class _CompactBody(TypedDict):
    summary: str
    """text of the summary"""


CompactBody = TypedDict("CompactBody", {"from": "str", "keep": "int"}, total=False)


class _Compacted(TypedDict):
    branch: str
    entry: str
    """id of the compaction entry"""
    firstKept: str | None
    """the first entry that is kept; null: none is"""
    head: str | None
    """the entry from which the next one grows; null: the next one is a root"""
    replaced: int
    """number of entries that the summary replaces"""
    seq: int
    """number of the commit; of the newest one if nothing was committed"""
    tokensBefore: int
    """tokens of the context before, an estimate if no usage reports them"""


class Compacted(_Compacted, total=False):
    kept: str
    """the branch that names the line that was left, where none did"""
    repeated: bool
    """the key was known: this is the first answer, and nothing was done"""


class _Context(TypedDict):
    diagnostics: list[Diagnostic]
    io: IO
    """requests to the backend"""
    leaf: str | None
    """the entry at which the context ends"""
    messages: list[Any]
    """as they were stored, or those of the request to the provider"""
    model: str | None
    openCalls: list[OpenCall]
    """tool calls without a result"""
    thinkingLevel: str


class Context(_Context, total=False):
    lost: list[Loss]
    """what the request does not have, or not as it was"""
    moreLost: int
    """number of losses past 1,000"""
    next: str
    """over HTTP: after of the page that follows"""
    omitted: Omitted
    """what a resume does not get; absent: nothing"""
    provider: str
    """the API in whose form the messages are"""
    system: Any
    """value of the request's field for instructions"""


class ContextItem(TypedDict, total=False):
    entry: str
    """the entry that contains it, or"""
    message: Any
    """the message itself"""


class Copies(TypedDict):
    sessions: list[str]
    """forks and other imports"""
    trash: list[str]
    """items of other sessions, or of other stores"""


class CostAt(TypedDict):
    cost: float
    """sum up to and with that commit, all branches"""
    seq: int
    """number of the commit"""


class Created(TypedDict):
    session: str
    """its id"""


class _Damage(TypedDict):
    damage: bool
    """data is lost or cannot be trusted; false: a note"""
    detail: str
    kind: str
    object: str
    """key of the object"""
    offset: int
    """byte offset in the object"""


class Damage(_Damage, total=False):
    hint: str
    session: str


class DayUsage(TypedDict):
    day: str
    """in UTC, as 2006-01-02"""
    usage: Tokens


class _Deleted(TypedDict):
    deleted: bool
    session: str


class Deleted(_Deleted, total=False):
    children: list[str]
    """sessions that were deleted with it; only over HTTP"""
    copies: Copies
    """what has entries of it and stays, with purge"""
    purged: Purged
    """what else was removed, with purge"""
    trash: str
    """the item that was created in the trash"""


class _Diagnostic(TypedDict):
    kind: str


class Diagnostic(_Diagnostic, total=False):
    detail: str
    """one line for people"""
    entry: str
    ordinal: int
    """number of the entry in the session"""


class Diff(TypedDict):
    base: str | None
    """the last entry on both paths; null: none"""
    messages: DiffEntries
    state: Any
    """RFC 6902 patch from the state of A to that of B"""


class _DiffEntries(TypedDict):
    onlyA: list[Any]
    """complete entries, root first"""
    onlyB: list[Any]
    """complete entries, root first"""


class DiffEntries(_DiffEntries, total=False):
    moreA: int
    """entries after those of onlyA; only over HTTP, with a limit"""
    moreB: int
    """entries after those of onlyB; only over HTTP, with a limit"""


class DocList(TypedDict):
    docs: dict[str, Any]
    """by name; empty where the session has none"""


class EditBody(TypedDict):
    entry: str
    """the entry of which it is another version"""
    message: Any
    """a message, or an entry"""


class _EntryList(TypedDict):
    entries: list[Any]
    """the lines of the entries"""


class EntryList(_EntryList, total=False):
    error: Problem
    """why the list is cut short after its first item"""
    marks: list[Mark]
    """with marks: one for each entry, in their order"""
    next: str
    """after of the page that follows; absent at the end"""
    prev: str
    """before of the page before"""


class _EraseBody(TypedDict):
    entries: list[str]
    """ids, or unique prefixes of ids; may be empty"""


class EraseBody(_EraseBody, total=False):
    docs: list[str]
    """names of small documents"""
    dryRun: bool
    """change nothing: the answer is what it would be"""
    everywhere: bool
    """also in forks, and in other imports of the same file"""
    purgeTrash: bool
    """remove items of the trash that have any of it"""
    reason: str
    """kept with each stub; nothing of what is erased"""
    states: list[str]
    """JSON pointers into the state of every commit"""


class _Erased(TypedDict):
    bytes: int
    """number of bytes written"""
    entries: list[str]
    """ids that are erased, amendments of entries among them"""
    images: int
    """number of images among what was removed"""
    io: IO
    """requests to the backend, with dryRun those that it would make"""
    others: list[Relative]
    """sessions that have some of the entries too: forks, other imports"""
    removed: int
    """number of objects that were removed"""
    session: str
    trash: list[str]
    """items of the trash that have some of the entries, or had them"""
    written: int
    """number of objects that were written again"""


class Erased(_Erased, total=False):
    already: list[str]
    """ids that were erased before"""
    commit: str
    """that records it; absent: nothing was to be done, or dryRun"""
    docs: list[str]
    """small documents that were there"""
    dryRun: bool
    """nothing was changed"""
    original: Replaced
    """of the imported file that is kept, if it changed"""
    purged: bool
    """these items were removed"""
    states: list[str]
    """pointers into the state that led to a value"""


class _Events(TypedDict):
    commits: list[Any]
    """as the data of the events commit; empty = none came"""
    next: str
    """after of the next request"""


class Events(_Events, total=False):
    reset: bool
    """after is of no commit: read the session again, then go on"""


class Failure(TypedDict):
    entry: str
    seq: int
    """number of the commit that stored it"""
    time: str


class _Fork(TypedDict):
    session: str
    """id of the new session"""


class Fork(_Fork, total=False):
    text: str
    """text of the message before which the new session ends"""


class ForkBody(TypedDict, total=False):
    id: str
    """of the new session; default a new id"""
    title: str
    to: str
    """a target; default head"""


class _Found(TypedDict):
    cursor: str
    """after of what follows it"""
    session: str


class Found(_Found, total=False):
    entry: Any
    """its line, as it was stored"""
    error: Problem
    """why no more of the session can be read; it has no entry"""


class _FoundList(TypedDict):
    entries: list[Found]


class FoundList(_FoundList, total=False):
    error: Problem
    """why the list is cut short after its first item"""
    next: str
    """after of the page that follows; absent at the end"""


class FoundProgram(TypedDict):
    bytes: int
    files: int
    folder: str
    program: str


class Health(TypedDict):
    status: str


class HideBody(TypedDict):
    entry: str


class IO(TypedDict):
    append: int
    bytesRead: int
    bytesWritten: int
    delete: int
    get: int
    list: int
    put: int
    stat: int


class _Import(TypedDict):
    imported: list[Imported]
    """one element for each file"""
    total: ImportTotal


class Import(_Import, total=False):
    found: list[FoundProgram]
    """what there is of each program, where no file was named"""


class _ImportDiagnostic(TypedDict):
    kind: str


class ImportDiagnostic(_ImportDiagnostic, total=False):
    detail: str
    entry: str
    line: int
    """number of the line in the file, from 1"""
    ordinal: int
    """number of the entry in the session"""


class ImportTotal(TypedDict):
    branches: int
    """number of messages on their branches"""
    deleted: int
    """number of files whose sessions were deleted: not imported again"""
    diagnostics: int
    entries: int
    """number of entries that were added"""
    failed: int
    files: int
    grown: int
    messages: int
    """number of messages on their current lines"""
    new: int
    sessions: int
    """sessions that are new or have grown, those of agents too"""
    unchanged: int


class _Imported(TypedDict):
    file: str


class Imported(_Imported, total=False):
    added: int
    """number of entries that were added"""
    badLines: int
    """number of lines that were skipped"""
    branches: int
    """messages on its branches"""
    children: list[str]
    """other sessions that were in the file"""
    deleted: str
    """when its session was deleted: nothing was written"""
    diagnostics: list[ImportDiagnostic]
    entries: int
    """number of entries of the session"""
    error: Problem
    format: str
    grew: bool
    """entries were added to the session of an earlier import"""
    messages: int
    """messages on the lines of what was imported"""
    replaced: list[str]
    """sessions that were deleted for this one"""
    session: str
    unchanged: bool
    """imported before: nothing was written"""


class IssuedToken(TypedDict):
    expires: str
    token: str


class Label(TypedDict):
    entry: str
    label: str
    """the complete text"""
    time: str
    """when it was set"""


class LabelBody(TypedDict):
    entry: str
    label: str
    """empty removes it"""


class LabelList(TypedDict):
    labels: list[Label]
    """in the order in which they were set"""


class _Loss(TypedDict):
    kind: str
    message: int
    """index of the message in the context, from 0; -1: none"""


class Loss(_Loss, total=False):
    detail: str
    """one line for people"""
    entry: str


class _Mark(TypedDict):
    children: int
    """number of entries that are said next, whatever structure is between"""
    id: str
    """of the entry"""
    label: str
    """cut at 80 bytes; empty: there is none"""
    of: int
    """number of its versions, itself included"""
    onHead: bool
    """the path to the head contains the entry"""
    version: int
    """place among its versions, from 1; 0: structure, or hidden"""
    versions: list[str]
    """their ids in the order of versions/{entry}; of over 64 those around it"""


class Mark(_Mark, total=False):
    amendedBy: str
    """the amendment that the line of the entry shows"""


class Match(TypedDict):
    branches: list[str]
    """branches that contain the entry, at most 16"""
    entry: str
    mark: list[int]
    """range of the match in the snippet, in bytes of UTF-8"""
    onHead: bool
    """the path to the head contains the entry"""
    ordinal: int
    """number of the entry in the session"""
    role: str
    session: str
    snippet: str
    """one line around the match"""
    time: str
    title: str
    """name of the session"""
    type: str


class _MatchList(TypedDict):
    matches: list[Match]
    """best first"""


class MatchList(_MatchList, total=False):
    indexing: float
    """how much is indexed, from 0 to 1; absent: all is"""
    next: str
    """after of the next page; absent at the end"""
    problems: list[ReportedProblem]
    """sessions that could not be read, or not to their end"""


class ModelUsage(TypedDict):
    model: str | None
    """provider/id; null: answers without a model"""
    usage: Tokens


class _Moved(TypedDict):
    branch: str
    head: str | None
    """the entry from which the next one grows; null: the next one is a root"""
    seq: int
    """number of the commit; of the newest one if nothing was committed"""


class Moved(_Moved, total=False):
    kept: str
    """the branch that names the line that was left, where none did"""
    repeated: bool
    """the key was known: this is the first answer, and nothing was done"""


NewCommit = TypedDict("NewCommit", {
    "context": "list[ContextItem]",
    "create": "NewSession",
    "docs": "dict[str, Any]",
    "entries": "list[Any]",
    "from": "str",
    "images": "Literal[\"inline\", \"ref\"]",
    "manager": "Any",
    "onConflict": "Literal[\"fail\", \"keep-both\", \"keep-fenced\"]",
    "onKnownId": "Literal[\"error\", \"ignore\", \"amend\"]",
    "reason": "str",
    "state": "Any",
}, total=False)


class NewHold(TypedDict):
    reason: str
    """at most 1 KiB"""


class NewSession(TypedDict, total=False):
    again: bool
    """also under the id of a deleted session"""
    cwd: str
    meta: dict[str, str]
    parent: str
    """the session that starts this one"""
    relation: str
    """what it is to its parent"""
    title: str


class NewToken(TypedDict, total=False):
    meta: dict[str, str]
    """one key: only for sessions with this value in their metadata"""
    rights: str
    """as in the token file, none that the one who asks has not"""
    seconds: int
    """for which it is valid, 1 to 86,400; default 3,600"""
    session: str
    """the one session that it is for"""
    write: bool
    """the rights are read,write"""


class NoBody(TypedDict, total=False):
    pass


class _Node(TypedDict):
    id: str
    label: str
    onPath: bool
    """on the path to the head"""
    ordinal: int
    """number of the entry in the session"""
    parentId: str | None
    """the nearest ancestor that passes the filter; null: none"""
    preview: str
    """one line of at most 80 bytes"""
    role: str
    size: int
    """length of the entry's line as it was appended"""
    time: str
    type: str


class Node(_Node, total=False):
    amendedBy: str
    """the amendment whose text preview and role are of"""
    failed: bool
    """an answer that ended in an error, or a result of a call that failed"""
    withdrawn: bool
    """the amendment hides the entry"""


Omitted = TypedDict("Omitted", {"count": "int", "first": "str", "from": "int", "last": "str", "to": "int"})


class OpenCall(TypedDict):
    arguments: Any
    """null where the message has none"""
    entry: str
    id: str
    name: str


class PartialBody(TypedDict):
    partial: Any
    """what was streamed so far; null = nothing any more"""


class _Problem(TypedDict):
    code: str
    """what went wrong, for programs"""
    detail: str
    """what went wrong, one line for people"""
    status: int
    title: str
    """the status in words"""
    type: str
    """always about:blank: code says what went wrong"""


class Problem(_Problem, total=False):
    commit: str
    """of outcome-unknown: the commit, as the log would have it"""
    entries: list[Any]
    """of conflict: the entries since the commit of If-Match"""
    hint: str
    """what to do"""
    left: list[str]
    """of a deletion with children: what is not deleted"""
    more: bool
    """of conflict: entries are not all"""
    winner: Commit
    """of conflict: the commit at the head"""


class Prompt(TypedDict):
    branches: list[str]
    """branches that contain the entry, at most 16"""
    cwd: str
    entry: str
    onHead: bool
    """the path to the head contains the entry"""
    ordinal: int
    """number of the entry in the session"""
    session: str
    text: str
    time: str
    title: str
    uses: int
    """how often it was typed, in all sessions"""


class _PromptList(TypedDict):
    prompts: list[Prompt]
    """newest first; one that was repeated directly is listed once"""


class PromptList(_PromptList, total=False):
    indexing: float
    """how much is indexed, from 0 to 1; absent: all is"""
    next: str
    """after of the next page; absent at the end"""
    problems: list[ReportedProblem]
    """sessions that could not be read, or not to their end"""


class Purged(TypedDict):
    crumbs: int
    """terminals that remembered it"""
    pin: bool
    """it was pinned"""
    trash: list[str]
    """names of items of the trash"""


class _Relative(TypedDict):
    entries: list[str]
    session: str


class Relative(_Relative, total=False):
    commit: str
    """that records their erasure; absent: they are not erased, or dryRun"""
    docs: list[str]
    """small documents that it has too"""
    states: list[str]
    """pointers that lead to a value in its states too"""


class Removal(TypedDict):
    because: list[str]
    bytes: int
    commit: str
    name: str
    session: str
    updated: str


class RenameBody(TypedDict):
    branch: str
    name: str
    """its new name; empty removes the name, and the entries stay"""


class Replaced(TypedDict):
    after: str
    """in hex"""
    before: str
    """in hex"""


class _ReportedProblem(TypedDict):
    code: str
    """what went wrong, for programs"""
    message: str
    """what went wrong, one line for people"""


class ReportedProblem(_ReportedProblem, total=False):
    hint: str
    """what to do"""


class _Resume(TypedDict):
    branch: str
    commit: str
    """id of the newest commit"""
    context: list[Any]
    """the messages of the bounded working context"""
    head: str | None
    """the entry from which the next one grows; null: the next one is a root"""
    io: IO
    """requests to the backend"""
    openCalls: list[OpenCall]
    """tool calls of the context without a result"""
    seq: int
    """number of the newest commit"""
    session: str
    state: Any
    """the agent's state; null if it was never set"""
    window: Window


class Resume(_Resume, total=False):
    docs: dict[str, Any]
    """documents by name"""
    manager: Any
    """what the context manager keeps"""
    missing: int
    """number of the newest commit that was made and is lost"""


class _Retained(TypedDict):
    bytes: int
    """of all objects of them"""
    dryRun: bool
    left: int
    """bytes of those that the policy leaves"""
    removals: list[Removal]
    """what the policy does not keep, in the order in which it is removed"""
    requests: int
    """to the backend"""
    sessions: int
    """that the store has"""
    stayed: list[Stay]
    """removals that were not done"""
    thinned: list[Thinned]
    """of sessions that stay"""


class Retained(_Retained, total=False):
    more: bool
    """it met its bound: another run continues"""


class Retention(TypedDict):
    policy: Rules


class RetentionRun(TypedDict, total=False):
    dryRun: bool
    """change nothing: the answer is what would be removed"""


class _Rollback(TypedDict):
    branch: str
    head: str | None
    """the entry from which the next one grows; null: the next one is a root"""
    seq: int
    """number of the commit; of the newest one if nothing was committed"""
    state: Any
    """the state that was restored; null if it was never set"""


class Rollback(_Rollback, total=False):
    kept: str
    """the branch that names the line that was left, where none did"""
    repeated: bool
    """the key was known: this is the first answer, and nothing was done"""


class _Row(TypedDict):
    children: int
    """number of rows directly below"""
    depth: int
    """number of ancestors in the list"""
    folded: bool
    hidden: int
    """of a folded row: number of entries below it"""
    id: str
    indent: int
    """number of forks on the path"""
    label: str
    labelTime: str | None
    """when the label was set; null: there is none"""
    onPath: bool
    """on the path to the head"""
    ordinal: int
    """number of the entry in the session"""
    parentId: str | None
    """the nearest ancestor that passes the filter; null: none"""
    preview: str
    """one line of at most 80 bytes"""
    role: str
    size: int
    """length of the entry's line as it was appended"""
    time: str
    type: str
    version: int
    """place among the rows with the same parent, from 1"""
    versions: int
    """number of rows with the same parent"""


class Row(_Row, total=False):
    amendedBy: str
    """the amendment whose text preview and role are of"""
    failed: bool
    """an answer that ended in an error, or a result of a call that failed"""
    withdrawn: bool
    """the amendment hides the entry"""


_RowList = TypedDict("_RowList", {
    "branches": "list[Branch]",
    "from": "int",
    "head": "str | None",
    "rows": "list[Row]",
    "total": "int",
    "view": "str",
})


class RowList(_RowList, total=False):
    at: int
    """of around: the row of the entry, or of its nearest ancestor that has one"""
    cause: str
    """over HTTP: why what is drawn is only what is intact"""
    headAt: str
    """the nearest ancestor of the head that is in the list, if it is not"""
    missing: int
    """number of the newest commit that was made and is lost"""
    selected: str
    """the selected entry, or its nearest ancestor that is shown"""


class Rules(TypedDict, total=False):
    groupBy: str
    """with keepLast: the metadata key of the groups, not the folder"""
    keepLast: int
    """so many of each group stay, those of the newest activity"""
    keepWithin: int
    """seconds: sessions that were active within them stay"""
    maxBytes: int
    """others go only while the store has more bytes"""
    snapshots: Snapshots
    """which snapshots of each session stay; absent = all"""


_SecretAt = TypedDict("_SecretAt", {
    "count": "int",
    "in": "Literal[\"entry\", \"session\", \"state\", \"document\"]",
    "rule": "str",
})


class SecretAt(_SecretAt, total=False):
    entry: str
    """its id"""


class _SecretList(TypedDict):
    secrets: list[SecretAt]
    """in the order of appending; never the credentials"""


class SecretList(_SecretList, total=False):
    next: str
    """after of the page that follows, also of an empty one"""


class _Session(TypedDict):
    branch: str
    bytes: int
    """size of the raw transcript"""
    created: str
    cwd: str
    """the working directory"""
    entries: int
    """number of entries, commits not counted"""
    head: str | None
    """the entry from which the next one grows; null: the next one is a root"""
    id: str
    preview: str
    """one line of the newest message"""
    seq: int
    """number of the newest commit, from 0"""
    title: str
    updated: str
    """the time of the newest activity"""


class Session(_Session, total=False):
    cause: str
    """of a damaged session: why it cannot be read"""
    damaged: bool
    """it lost commits (missing), or only id and updated are known"""
    docs: dict[str, Any]
    """in a list over HTTP: the documents that it asks for"""
    first: str
    """one line of the first prompt"""
    internal: bool
    """an agent started it for its own purposes"""
    meta: dict[str, str]
    """metadata, as it was set"""
    missing: int
    """number of the newest commit that was made and is lost"""
    parent: str
    """the session that started this one"""
    relation: str
    """what it is to its parent: fork, agent, or a word of its creator"""
    status: str
    """asked, calling, working, answered, failed or aborted"""


class SessionChange(TypedDict, total=False):
    cwd: str
    meta: dict[str, str | None]
    """by key; null removes it, and keys that are absent stay"""
    title: str


class _SessionList(TypedDict):
    sessions: list[Session]


class SessionList(_SessionList, total=False):
    age: int
    """of the catalogue that answered, in seconds; else absent"""
    error: Problem
    """why the list is cut short after its first item"""
    next: str
    """after of the next page; absent at the end"""


class _SessionUsage(TypedDict):
    created: str
    cwd: str
    days: list[DayUsage]
    """of usage, by day of the answer, oldest first, at most the newest 1,024"""
    entries: int
    """number of entries that were read"""
    models: list[ModelUsage]
    """of usage, by model, in the order of their names"""
    scope: Literal["session", "path"]
    """session: all branches; path: one path"""
    session: str
    title: str
    updated: str
    usage: Tokens
    """of the answers that this session received"""


class SessionUsage(_SessionUsage, total=False):
    damaged: bool
    """not all of it can be read: what it used is more, or not known"""
    failed: int
    """number of entries that failed: answers, results of calls"""
    inherited: Tokens
    """of copies of answers that other sessions received"""
    parent: str
    """the session that started this one"""
    points: list[CostAt]
    """how the cost grew, oldest first, at most 512; only on request"""
    relation: str
    """what it is to its parent, such as agent or fork"""


class _Snapshot(TypedDict):
    bytes: int
    commit: str
    id: str
    reason: str
    """that of the commit"""
    seq: int
    tag: str
    time: str


class Snapshot(_Snapshot, total=False):
    only: bool
    """because of damage, no other copy of the state exists"""


class SnapshotBody(TypedDict, total=False):
    tag: str


class SnapshotList(TypedDict):
    snapshots: list[Snapshot]
    """newest first"""


class Snapshots(TypedDict, total=False):
    keepDaily: int
    """the newest of each of so many days that have one"""
    keepLast: int
    """the newest"""
    keepTags: list[str]
    """with one of these tags; * = with any"""
    keepWeekly: int
    """the newest of each of so many weeks that have one"""


class Stay(TypedDict):
    reason: str
    """conflict (it was changed) or held; also of what it belongs with"""
    session: str


class _Stored(TypedDict):
    bytes: int
    """of transcripts as lines; of images, snapshots, originals and trash as stored"""
    sessions: int


class Stored(_Stored, total=False):
    maxBytes: int
    maxSessions: int
    """the quota of the tenant; absent: none"""


class SwitchBody(TypedDict):
    to: str
    """a branch, or an entry: then the newest leaf below it"""


class TargetBody(TypedDict):
    to: str
    """a target, as at of state"""


class Thinned(TypedDict):
    session: str
    snapshots: list[Snapshot]


class Tokens(TypedDict):
    answers: int
    """number of responses of providers"""
    cacheRead: int
    cacheWrite: int
    cost: float
    """in the currency of the program that wrote it; 0: none did"""
    input: int
    """without tokens read from or written to a cache"""
    output: int
    """including reasoning"""
    reasoning: int
    total: int


class _TreeMap(TypedDict):
    buckets: list[Bucket]
    """stretches of rows, in their order"""
    total: int
    view: str


class TreeMap(_TreeMap, total=False):
    cause: str
    """why what is drawn is only what is intact"""
    failures: list[Failure]
    """on request: the newest 1,000, in the order of appending"""
    nextHit: int
    """the one after near, around the end; absent: none"""
    previousHit: int
    """the one before near"""


class _Usage(TypedDict):
    days: list[DayUsage]
    """of usage, by day of the answer, oldest first, at most the newest 1,024"""
    entries: int
    """number of entries that were read"""
    models: list[ModelUsage]
    """of usage, by model, in the order of their names"""
    scope: Literal["session", "path"]
    """session: all branches; path: one path"""
    session: str
    usage: Tokens
    """of the answers that this session received"""


class Usage(_Usage, total=False):
    failed: int
    """number of entries that failed: answers, results of calls"""
    inherited: Tokens
    """of copies of answers that other sessions received"""
    points: list[CostAt]
    """how the cost grew, oldest first, at most 512; only on request"""


class _UsageList(TypedDict):
    sessions: list[SessionUsage]
    """in the order of the list of sessions"""


class UsageList(_UsageList, total=False):
    error: Problem
    """why the list is cut short after its first item"""
    next: str
    """after of the next page; absent at the end"""
    stored: Stored
    """all of the store, on the first page; not as NDJSON"""


class Verify(TypedDict):
    bytes: int
    """number of bytes that were read"""
    deep: bool
    """every byte was read"""
    io: IO
    """requests to the backend"""
    objects: int
    problems: list[Damage]
    """damage, and notes on what is intact"""
    sessions: int
    """number of sessions that were checked"""


class VerifyBody(TypedDict, total=False):
    deep: bool
    """read every byte"""


class Versions(TypedDict):
    at: int
    """the place of the entry that was asked for, from 0"""
    versions: list[Node]
    """oldest first"""


class Window(TypedDict):
    complete: bool
    """false: older entries were omitted"""
    omittedEntries: int


class Event(Commit):
    """A commit as those who follow a session get it."""

    entries: list[Any]  # type: ignore[misc]
    """the entries that the commit made durable, as they were appended"""
    state: list[dict[str, Any]]
    """RFC 6902 patch from the state before the commit to the one after it"""
