// Generated from docs/openapi.json by scripts/generate.mjs: run `npm run generate` to change it.

export interface paths {
    "/metrics": {
        /** Counts and durations of requests, and figures of the process, for Prometheus */
        get: operations["metrics"];
    };
    "/v1/access": {
        /** What the client may do, so that it does not offer what would be refused */
        get: operations["access"];
    };
    "/v1/entries": {
        /**
         * Entries of many sessions, by their type and by any member
         * @description Session by session in the order of their ids, and within one in the order of appending. Amendments are entries of their own, and nothing is hidden. meta.KEY=VALUE, for any key and more than once: only sessions with this metadata. match.PATH=JSON, for any dotted path of members (match.data.source="loop"): only entries with this value there, members of objects in any order, numbers as they are written.
         */
        get: operations["queryEntries"];
    };
    "/v1/health": {
        /** Whether the server answers */
        get: operations["health"];
    };
    "/v1/import": {
        /**
         * Import a session file of another program, which is the body
         * @description As `coppice import`: a file that was imported before and has not changed is left alone, and what was added to it is appended to its session. One whose session was deleted is not imported. Damaged lines are skipped and reported.
         */
        post: operations["import"];
    };
    "/v1/openapi.json": {
        /** This description */
        get: operations["openapi"];
    };
    "/v1/prompts": {
        /** What users typed in all sessions and branches, newest first */
        get: operations["prompts"];
    };
    "/v1/retention": {
        /**
         * Which sessions and snapshots stay
         * @description Without a rule all stay.
         */
        get: operations["getRetention"];
        /**
         * Replace the retention policy of the store
         * @description A session that a keep rule keeps is never removed; all others go when the policy is run. It removes nothing by itself.
         */
        put: operations["setRetention"];
        /**
         * Remove for good what the retention policy does not keep
         * @description A dry run unless dryRun is false. Sessions that are held or cannot be read stay, and those that change meanwhile. One run has a store at a time: another one is 503 busy. If it fails, a repeat continues.
         */
        post: operations["runRetention"];
    };
    "/v1/search": {
        /**
         * Entries of all sessions and branches that contain words
         * @description Finds what was committed before, or, where the index takes longer than 2 s to read that, what is indexed so far. Of one entry the first 256 KiB of text are searched.
         */
        get: operations["search"];
    };
    "/v1/sessions": {
        /**
         * Sessions, newest activity first or in another order
         * @description meta.KEY=VALUE, for any key and more than once: only sessions with this metadata.
         */
        get: operations["listSessions"];
    };
    "/v1/sessions/{id}": {
        /** The summary of a session; its ETag is the newest commit */
        get: operations["getSession"];
        /**
         * Create a session
         * @description Commits seq 0. With an Idempotency-Key a repeat gets the first answer.
         */
        put: operations["createSession"];
        /**
         * Delete a session for good, or into the trash
         * @description `coppice trash` lists what is in the trash, and restores it. With children=true, sessions that it started are deleted before it, and those that they started, but no forks. If that fails in the middle, left names those that are not deleted, and a repeat continues. purge=true needs the right erase too: it also removes the items of the trash that are of the session, its pin and what terminals remember, names what keeps copies, and completes an earlier deletion.
         */
        delete: operations["deleteSession"];
        /** Change title, working directory and metadata */
        patch: operations["changeSession"];
    };
    "/v1/sessions/{id}/amend": {
        /** Replace the content of an entry, for all that read it */
        post: operations["amend"];
    };
    "/v1/sessions/{id}/blame": {
        /**
         * Which commits changed a value of the state
         * @description Newest first. A request looks at no more than 10,000 commits and 256 MiB of states, so a page may be empty and have next. Losing turns that were kept on a branch do not count, but for one that at names.
         */
        get: operations["blame"];
    };
    "/v1/sessions/{id}/blobs/{sha256}": {
        /**
         * The bytes of an image, or a range of them
         * @description An image of an entry that has more than 24 KiB is stored apart, once. What is no picture is a download.
         */
        get: operations["blob"];
        /**
         * Send the bytes of an image before the commit whose entries refer to it
         * @description The server keeps them in memory for 10 minutes, or until others need the room; another server of the store does not have them. A commit with images ref refers to them as coppice-blob:sha256:HEX:BYTES in place of base64.
         */
        put: operations["upload"];
    };
    "/v1/sessions/{id}/branch": {
        /** Move the head to an entry, so that the next one begins a branch */
        post: operations["branch"];
    };
    "/v1/sessions/{id}/branches": {
        /** Branches and their heads */
        get: operations["branches"];
    };
    "/v1/sessions/{id}/claim": {
        /** Take over the session from writers of before */
        post: operations["claim"];
    };
    "/v1/sessions/{id}/commits": {
        /**
         * Commits, newest first
         * @description With at, the first one is the commit in force at a target: that of an entry is the one with the state that the agent had there. after and before lead on from there in both directions.
         */
        get: operations["listCommits"];
        /**
         * Commit entries and state, all or nothing
         * @description Entries without a parent grow from the head of the commit in If-Match. A conflict is 412 with the winner and the entries since; with onConflict keep-both the commit is stored on a branch, kept; with keep-fenced also where another client has claimed the session. An entry may be {message, original}, which keeps what a program has of the message, or {entry, onKnownId}. With a format entries are lines of that program, as they are in its files, or the body is: they become the entries of an import, and each keeps its lines as original, or originals. Lines that the session has are passed over.
         */
        post: operations["commit"];
    };
    "/v1/sessions/{id}/commits/{seq}": {
        /** One commit, which never changes */
        get: operations["getCommit"];
    };
    "/v1/sessions/{id}/compact": {
        /** Replace the older part of the context with a summary */
        post: operations["compact"];
    };
    "/v1/sessions/{id}/context": {
        /**
         * What the model saw, now or at any time, complete or in pages
         * @description Calls, diagnostics and losses come with the first page.
         */
        get: operations["context"];
    };
    "/v1/sessions/{id}/diff": {
        /** What differs in messages and state between two times */
        get: operations["diff"];
    };
    "/v1/sessions/{id}/docs": {
        /** The documents of a session, now or at any time */
        get: operations["docs"];
    };
    "/v1/sessions/{id}/docs/{name}": {
        /** One document, now or at any time; 404 where there is none of this name */
        get: operations["getDoc"];
    };
    "/v1/sessions/{id}/edit": {
        /** Append another version of an entry, and move the head to it */
        post: operations["edit"];
    };
    "/v1/sessions/{id}/entries": {
        /**
         * Entries of a path or of all branches, in either direction
         * @description With limit=all the answer has every entry, and is written while they are read. match.PATH=JSON, for any dotted path of members (match.data.source="loop"): only entries with this value there, members of objects in any order, numbers as they are written. With images=ref the base64 text of an image of more than 24 KiB is coppice-blob:sha256:HEX:BYTES, of which blobs/HEX has the bytes; other text that begins so has =: after the colon.
         */
        get: operations["listEntries"];
    };
    "/v1/sessions/{id}/entries/{entry}": {
        /** One entry, as amendments have it */
        get: operations["getEntry"];
    };
    "/v1/sessions/{id}/erase": {
        /**
         * Remove the content of entries for good, and leave stubs
         * @description It is a conflict for no writer. If it fails in the middle readers see the entries or the stubs, and a repeat completes it; a repeat after it is done changes nothing. Not reached are quotations in other entries and other values of states, exported files, backups, and older versions that a store keeps.
         */
        post: operations["erase"];
    };
    "/v1/sessions/{id}/events": {
        /**
         * Commits as they come, as server-sent events or by a long poll
         * @description Events: commit (data is an Event, id its seq), partial (what is streamed now, null = nothing), reset (what was asked for is gone: read the session again). Only commits have an id, and so has the beginning, without an event. Last-Event-ID resumes.
         */
        get: operations["events"];
    };
    "/v1/sessions/{id}/export": {
        /**
         * The session as a file
         * @description What the format cannot express is in the trailer Coppice-Losses: a JSON object of counts. Of a session with credentials nothing is sent (409, secrets), until secrets=redact replaces each by [secret: RULE], or secrets=allow sends them. The format original has them, unless secrets=redact.
         */
        get: operations["export"];
    };
    "/v1/sessions/{id}/fork": {
        /** A new session of the path to a target */
        post: operations["fork"];
    };
    "/v1/sessions/{id}/hide": {
        /** Leave an entry out of contexts, paths and trees; amend shows it again */
        post: operations["hide"];
    };
    "/v1/sessions/{id}/hold": {
        /**
         * Hold a session: nothing removes it
         * @description Until it is released, its deletion, an erasure in it and retention are 409 held. Commits go on. The reason is its metadata coppice.hold, which nothing else changes.
         */
        put: operations["hold"];
        /** End the hold of a session */
        delete: operations["release"];
    };
    "/v1/sessions/{id}/label": {
        /** Name an entry for people; the head stays */
        post: operations["label"];
    };
    "/v1/sessions/{id}/labels": {
        /** Labels of entries */
        get: operations["labels"];
    };
    "/v1/sessions/{id}/map": {
        /**
         * The drawn tree in at most 2,048 buckets
         * @description The first request with a mark reads the session once. The view keeps the hits of the last 8 marks.
         */
        get: operations["map"];
    };
    "/v1/sessions/{id}/original": {
        /**
         * The session as it was imported, byte for byte
         * @description Of a session that was not imported, the lines that commits with a format brought; if none did, all entries.
         */
        get: operations["original"];
    };
    "/v1/sessions/{id}/partial": {
        /**
         * Say what the assistant has streamed so far, to those who follow the session
         * @description No commit: the next one ends it.
         */
        post: operations["partial"];
    };
    "/v1/sessions/{id}/rename-branch": {
        /** Rename a branch, or remove its name */
        post: operations["renameBranch"];
    };
    "/v1/sessions/{id}/resume": {
        /** What an agent needs to continue: state, context, head. One read of the store */
        get: operations["resume"];
    };
    "/v1/sessions/{id}/rollback": {
        /** Restore state, context and head as they were */
        post: operations["rollback"];
    };
    "/v1/sessions/{id}/rows": {
        /** The tree as it is drawn, a stretch of rows at a time */
        get: operations["rows"];
    };
    "/v1/sessions/{id}/secrets": {
        /**
         * How many credentials a session has, by rule
         * @description A request looks at no more than 2,000 entries and 8 MiB, of all branches, as they are amended; the last page also at the title, the newest state and documents. `coppice secrets` looks at everything.
         */
        get: operations["secrets"];
    };
    "/v1/sessions/{id}/snapshot": {
        /** Store the state of the newest commit as a snapshot */
        post: operations["snapshot"];
    };
    "/v1/sessions/{id}/snapshots": {
        /** Snapshots */
        get: operations["snapshots"];
    };
    "/v1/sessions/{id}/state": {
        /** The agent's state, now or at any time */
        get: operations["state"];
    };
    "/v1/sessions/{id}/switch": {
        /** Move the head to a branch, with the state in force there */
        post: operations["switch"];
    };
    "/v1/sessions/{id}/usage": {
        /** Tokens and cost of all branches, or of one path. Lists the store, for copies, and reads every entry */
        get: operations["usage"];
    };
    "/v1/sessions/{id}/verify": {
        /** Read the session and report damage; changes nothing, so the right to read is enough */
        post: operations["verify"];
    };
    "/v1/sessions/{id}/versions/{entry}": {
        /** The versions of an entry: what grows from the same parent */
        get: operations["versions"];
    };
    "/v1/tokens": {
        /**
         * A token for one session, or for some, that is valid for a time
         * @description For a page in a browser. It is known to this server alone, until it ends; a stream that began with it lasts for up to 10 minutes more.
         */
        post: operations["issueToken"];
    };
    "/v1/usage": {
        /**
         * Tokens and cost of sessions, each with all branches
         * @description Each response of a provider counts in one session, the one that received it. Reads every entry of a session that was changed since it was asked for last. meta.KEY=VALUE, for any key and more than once: only sessions with this metadata.
         */
        get: operations["allUsage"];
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        AccessDoc: {
            /** @description only sessions with this value in their metadata */
            meta?: {
                [key: string]: string;
            };
            /** @description the server refuses every write, with any token */
            readOnly: boolean;
            /** @description those of read, write, delete, erase, hold and issue (of tokens) that it has */
            rights: string[];
            /** @description only this session */
            session?: string;
            /** @description the tenant of the path; empty: none */
            tenant: string;
        };
        AmendBody: {
            entry: string;
            /** @description or an entry of its type; null = as it was appended */
            message?: unknown;
        };
        BlameList: {
            /** @description newest first */
            changes: components["schemas"]["Change"][];
            /** @description after of the older ones, also of an empty page; absent at the end */
            next?: string;
        };
        Branch: {
            /** @description the nearest ancestor of the head that is in the list, if the head is not */
            at?: string;
            /** @description null: the next entry becomes a root */
            head: string | null;
            name: string;
            /** @description what people read in place of a name that was made */
            title?: string;
        };
        BranchBody: {
            /** @description the entry after which to go on; empty = before the first */
            entry: string;
            /** @description of the new branch */
            name?: string;
            /** @description of the path that is left */
            summary?: string;
        };
        BranchList: {
            branches: components["schemas"]["Branch"][];
        };
        Bucket: {
            /** Format: int64 */
            count: number;
            /**
             * Format: int64
             * @description entries that failed whose row, or that of the nearest ancestor, is in it
             */
            failed?: number;
            /** Format: int64 */
            forks: number;
            /** Format: int64 */
            from: number;
            /** @description the row of the head, or of its nearest ancestor that has one, is in it */
            head?: boolean;
            /**
             * Format: int64
             * @description with mark: rows whose entries contain its words
             */
            hits?: number;
            /** Format: int64 */
            indent: number;
            /**
             * Format: int64
             * @description rows with a label
             */
            labels: number;
            /** Format: int64 */
            onPath: number;
        };
        Change: {
            branch: string;
            /** @description its id */
            commit: string;
            /**
             * Format: int64
             * @description number of entries that it made durable
             */
            entries: number;
            /** Format: int64 */
            epoch: number;
            /** @description the entry from which the next one grew */
            head: string | null;
            /** @description the branch that was kept */
            kept?: string;
            /** @description idempotency key */
            key?: string;
            reason: string;
            /**
             * Format: int64
             * @description number of the commit; 0 is the creation
             */
            seq: number;
            /** @description snapshot that was taken of the state before the commit */
            snapshot: string | null;
            /** @description its state was lost, and no repair brought it back */
            stateLost?: boolean;
            /** Format: date-time */
            time: string;
            /** @description from this commit on; absent = there was none */
            value: unknown;
            writer: string;
        };
        Commit: {
            branch: string;
            /** @description its id */
            commit: string;
            /**
             * Format: int64
             * @description number of entries that it made durable
             */
            entries: number;
            /** Format: int64 */
            epoch: number;
            /** @description the entry from which the next one grew */
            head: string | null;
            /** @description the branch that was kept */
            kept?: string;
            /** @description idempotency key */
            key?: string;
            reason: string;
            /**
             * Format: int64
             * @description number of the commit; 0 is the creation
             */
            seq: number;
            /** @description snapshot that was taken of the state before the commit */
            snapshot: string | null;
            /** @description its state was lost, and no repair brought it back */
            stateLost?: boolean;
            /** Format: date-time */
            time: string;
            writer: string;
        };
        CommitList: {
            /** @description newest first */
            commits: components["schemas"]["Commit"][];
            /** @description why the list is cut short after its first item */
            error?: components["schemas"]["Problem"];
            /** @description after of the older ones; absent at the end */
            next?: string;
            /** @description before of the newer ones */
            prev?: string;
        };
        Committed: {
            /** @description the branch of that head */
            branch: string;
            /** @description id of that commit */
            commit: string;
            /** @description the commit created the session; only over HTTP */
            created?: boolean;
            /** @description ids of the entries that were stored, in their order */
            entries: string[];
            /** @description the entry from which the next one grows that is made on this commit */
            head: string | null;
            /** @description requests to the backend */
            io: components["schemas"]["IO"];
            /** @description the branch of a commit that lost to another writer */
            kept?: string;
            /** @description of these, those that the session had before */
            known?: string[];
            /** @description the branch of the line that a commit from an earlier entry left */
            left?: string;
            /** @description a commit with this key existed, and nothing was stored */
            repeated?: boolean;
            /**
             * Format: int64
             * @description number of the commit that contains them
             */
            seq: number;
            /** @description soft limits that were passed */
            warnings?: string[];
        };
        CompactBody: {
            /** @description first entry that is kept; default by keep */
            from?: string;
            /**
             * Format: int64
             * @description tokens that are kept, by estimate; default 20000
             */
            keep?: number;
            /** @description text of the summary */
            summary: string;
        };
        Compacted: {
            branch: string;
            /** @description id of the compaction entry */
            entry: string;
            /** @description the first entry that is kept; null: none is */
            firstKept: string | null;
            /** @description the entry from which the next one grows; null: the next one is a root */
            head: string | null;
            /** @description the branch that names the line that was left, where none did */
            kept?: string;
            /** @description the key was known: this is the first answer, and nothing was done */
            repeated?: boolean;
            /**
             * Format: int64
             * @description number of entries that the summary replaces
             */
            replaced: number;
            /**
             * Format: int64
             * @description number of the commit; of the newest one if nothing was committed
             */
            seq: number;
            /**
             * Format: int64
             * @description tokens of the context before, an estimate if no usage reports them
             */
            tokensBefore: number;
        };
        Context: {
            diagnostics: components["schemas"]["Diagnostic"][];
            /** @description requests to the backend */
            io: components["schemas"]["IO"];
            /** @description the entry at which the context ends */
            leaf: string | null;
            /** @description what the request does not have, or not as it was */
            lost?: components["schemas"]["Loss"][];
            /** @description as they were stored, or those of the request to the provider */
            messages: unknown[];
            model: string | null;
            /**
             * Format: int64
             * @description number of losses past 1,000
             */
            moreLost?: number;
            /** @description over HTTP: after of the page that follows */
            next?: string;
            /** @description what a resume does not get; absent: nothing */
            omitted?: components["schemas"]["Omitted"];
            /** @description tool calls without a result */
            openCalls: components["schemas"]["OpenCall"][];
            /** @description the API in whose form the messages are */
            provider?: string;
            /** @description value of the request's field for instructions */
            system?: unknown;
            thinkingLevel: string;
        };
        ContextItem: {
            /** @description the entry that contains it, or */
            entry?: string;
            /** @description the message itself */
            message?: unknown;
        };
        Copies: {
            /** @description forks and other imports */
            sessions: string[];
            /** @description items of other sessions, or of other stores */
            trash: string[];
        };
        CostAt: {
            /**
             * Format: double
             * @description sum up to and with that commit, all branches
             */
            cost: number;
            /**
             * Format: int64
             * @description number of the commit
             */
            seq: number;
        };
        Created: {
            /** @description its id */
            session: string;
        };
        Damage: {
            /** @description data is lost or cannot be trusted; false: a note */
            damage: boolean;
            detail: string;
            hint?: string;
            kind: string;
            /** @description key of the object */
            object: string;
            /**
             * Format: int64
             * @description byte offset in the object
             */
            offset: number;
            session?: string;
        };
        DayUsage: {
            /** @description in UTC, as 2006-01-02 */
            day: string;
            usage: components["schemas"]["Tokens"];
        };
        Deleted: {
            /** @description sessions that were deleted with it; only over HTTP */
            children?: string[];
            /** @description what has entries of it and stays, with purge */
            copies?: components["schemas"]["Copies"];
            deleted: boolean;
            /** @description what else was removed, with purge */
            purged?: components["schemas"]["Purged"];
            session: string;
            /** @description the item that was created in the trash */
            trash?: string;
        };
        Diagnostic: {
            /** @description one line for people */
            detail?: string;
            entry?: string;
            kind: string;
            /**
             * Format: int64
             * @description number of the entry in the session
             */
            ordinal?: number;
        };
        Diff: {
            /** @description the last entry on both paths; null: none */
            base: string | null;
            messages: components["schemas"]["DiffEntries"];
            /** @description RFC 6902 patch from the state of A to that of B */
            state: unknown;
        };
        DiffEntries: {
            /**
             * Format: int64
             * @description entries after those of onlyA; only over HTTP, with a limit
             */
            moreA?: number;
            /**
             * Format: int64
             * @description entries after those of onlyB; only over HTTP, with a limit
             */
            moreB?: number;
            /** @description complete entries, root first */
            onlyA: unknown[];
            /** @description complete entries, root first */
            onlyB: unknown[];
        };
        DocList: {
            /** @description by name; empty where the session has none */
            docs: {
                [key: string]: unknown;
            };
        };
        EditBody: {
            /** @description the entry of which it is another version */
            entry: string;
            /** @description a message, or an entry */
            message: unknown;
        };
        EntryList: {
            /** @description the lines of the entries */
            entries: unknown[];
            /** @description why the list is cut short after its first item */
            error?: components["schemas"]["Problem"];
            /** @description with marks: one for each entry, in their order */
            marks?: components["schemas"]["Mark"][];
            /** @description after of the page that follows; absent at the end */
            next?: string;
            /** @description before of the page before */
            prev?: string;
        };
        EraseBody: {
            /** @description names of small documents */
            docs?: string[];
            /** @description change nothing: the answer is what it would be */
            dryRun?: boolean;
            /** @description ids, or unique prefixes of ids; may be empty */
            entries: string[];
            /** @description also in forks, and in other imports of the same file */
            everywhere?: boolean;
            /** @description remove items of the trash that have any of it */
            purgeTrash?: boolean;
            /** @description kept with each stub; nothing of what is erased */
            reason?: string;
            /** @description JSON pointers into the state of every commit */
            states?: string[];
        };
        Erased: {
            /** @description ids that were erased before */
            already?: string[];
            /**
             * Format: int64
             * @description number of bytes written
             */
            bytes: number;
            /** @description that records it; absent: nothing was to be done, or dryRun */
            commit?: string;
            /** @description small documents that were there */
            docs?: string[];
            /** @description nothing was changed */
            dryRun?: boolean;
            /** @description ids that are erased, amendments of entries among them */
            entries: string[];
            /**
             * Format: int64
             * @description number of images among what was removed
             */
            images: number;
            /** @description requests to the backend, with dryRun those that it would make */
            io: components["schemas"]["IO"];
            /** @description of the imported file that is kept, if it changed */
            original?: components["schemas"]["Replaced"];
            /** @description sessions that have some of the entries too: forks, other imports */
            others: components["schemas"]["Relative"][];
            /** @description these items were removed */
            purged?: boolean;
            /**
             * Format: int64
             * @description number of objects that were removed
             */
            removed: number;
            session: string;
            /** @description pointers into the state that led to a value */
            states?: string[];
            /** @description items of the trash that have some of the entries, or had them */
            trash: string[];
            /**
             * Format: int64
             * @description number of objects that were written again
             */
            written: number;
        };
        Events: {
            /** @description as the data of the events commit; empty = none came */
            commits: unknown[];
            /** @description after of the next request */
            next: string;
            /** @description after is of no commit: read the session again, then go on */
            reset?: boolean;
        };
        Failure: {
            entry: string;
            /**
             * Format: int64
             * @description number of the commit that stored it
             */
            seq: number;
            /** Format: date-time */
            time: string;
        };
        Fork: {
            /** @description id of the new session */
            session: string;
            /** @description text of the message before which the new session ends */
            text?: string;
        };
        ForkBody: {
            /** @description of the new session; default a new id */
            id?: string;
            title?: string;
            /** @description a target; default head */
            to?: string;
        };
        Found: {
            /** @description after of what follows it */
            cursor: string;
            /** @description its line, as it was stored */
            entry?: unknown;
            /** @description why no more of the session can be read; it has no entry */
            error?: components["schemas"]["Problem"];
            session: string;
        };
        FoundList: {
            entries: components["schemas"]["Found"][];
            /** @description why the list is cut short after its first item */
            error?: components["schemas"]["Problem"];
            /** @description after of the page that follows; absent at the end */
            next?: string;
        };
        FoundProgram: {
            /** Format: int64 */
            bytes: number;
            /** Format: int64 */
            files: number;
            folder: string;
            program: string;
        };
        Health: {
            status: string;
        };
        HideBody: {
            entry: string;
        };
        IO: {
            /** Format: int64 */
            append: number;
            /** Format: int64 */
            bytesRead: number;
            /** Format: int64 */
            bytesWritten: number;
            /** Format: int64 */
            delete: number;
            /** Format: int64 */
            get: number;
            /** Format: int64 */
            list: number;
            /** Format: int64 */
            put: number;
            /** Format: int64 */
            stat: number;
        };
        Import: {
            /** @description what there is of each program, where no file was named */
            found?: components["schemas"]["FoundProgram"][];
            /** @description one element for each file */
            imported: components["schemas"]["Imported"][];
            total: components["schemas"]["ImportTotal"];
        };
        ImportDiagnostic: {
            detail?: string;
            entry?: string;
            kind: string;
            /**
             * Format: int64
             * @description number of the line in the file, from 1
             */
            line?: number;
            /**
             * Format: int64
             * @description number of the entry in the session
             */
            ordinal?: number;
        };
        ImportTotal: {
            /**
             * Format: int64
             * @description number of messages on their branches
             */
            branches: number;
            /**
             * Format: int64
             * @description number of files whose sessions were deleted: not imported again
             */
            deleted: number;
            /** Format: int64 */
            diagnostics: number;
            /**
             * Format: int64
             * @description number of entries that were added
             */
            entries: number;
            /** Format: int64 */
            failed: number;
            /** Format: int64 */
            files: number;
            /** Format: int64 */
            grown: number;
            /**
             * Format: int64
             * @description number of messages on their current lines
             */
            messages: number;
            /** Format: int64 */
            new: number;
            /**
             * Format: int64
             * @description sessions that are new or have grown, those of agents too
             */
            sessions: number;
            /** Format: int64 */
            unchanged: number;
        };
        Imported: {
            /**
             * Format: int64
             * @description number of entries that were added
             */
            added?: number;
            /**
             * Format: int64
             * @description number of lines that were skipped
             */
            badLines?: number;
            /**
             * Format: int64
             * @description messages on its branches
             */
            branches?: number;
            /** @description other sessions that were in the file */
            children?: string[];
            /**
             * Format: date-time
             * @description when its session was deleted: nothing was written
             */
            deleted?: string;
            diagnostics?: components["schemas"]["ImportDiagnostic"][];
            /**
             * Format: int64
             * @description number of entries of the session
             */
            entries?: number;
            error?: components["schemas"]["Problem"];
            file: string;
            format?: string;
            /** @description entries were added to the session of an earlier import */
            grew?: boolean;
            /**
             * Format: int64
             * @description messages on the lines of what was imported
             */
            messages?: number;
            /** @description sessions that were deleted for this one */
            replaced?: string[];
            session?: string;
            /** @description imported before: nothing was written */
            unchanged?: boolean;
        };
        IssuedToken: {
            /** Format: date-time */
            expires: string;
            token: string;
        };
        Label: {
            entry: string;
            /** @description the complete text */
            label: string;
            /**
             * Format: date-time
             * @description when it was set
             */
            time: string;
        };
        LabelBody: {
            entry: string;
            /** @description empty removes it */
            label: string;
        };
        LabelList: {
            /** @description in the order in which they were set */
            labels: components["schemas"]["Label"][];
        };
        Loss: {
            /** @description one line for people */
            detail?: string;
            entry?: string;
            kind: string;
            /**
             * Format: int64
             * @description index of the message in the context, from 0; -1: none
             */
            message: number;
        };
        Mark: {
            /** @description the amendment that the line of the entry shows */
            amendedBy?: string;
            /**
             * Format: int64
             * @description number of entries that are said next, whatever structure is between
             */
            children: number;
            /** @description of the entry */
            id: string;
            /** @description cut at 80 bytes; empty: there is none */
            label: string;
            /**
             * Format: int64
             * @description number of its versions, itself included
             */
            of: number;
            /** @description the path to the head contains the entry */
            onHead: boolean;
            /**
             * Format: int64
             * @description place among its versions, from 1; 0: structure, or hidden
             */
            version: number;
            /** @description their ids in the order of versions/{entry}; of over 64 those around it */
            versions: string[];
        };
        Match: {
            /** @description branches that contain the entry, at most 16 */
            branches: string[];
            entry: string;
            /** @description range of the match in the snippet, in bytes of UTF-8 */
            mark: number[];
            /** @description the path to the head contains the entry */
            onHead: boolean;
            /**
             * Format: int64
             * @description number of the entry in the session
             */
            ordinal: number;
            role: string;
            session: string;
            /** @description one line around the match */
            snippet: string;
            /** Format: date-time */
            time: string;
            /** @description name of the session */
            title: string;
            type: string;
        };
        MatchList: {
            /**
             * Format: double
             * @description how much is indexed, from 0 to 1; absent: all is
             */
            indexing?: number;
            /** @description best first */
            matches: components["schemas"]["Match"][];
            /** @description after of the next page; absent at the end */
            next?: string;
            /** @description sessions that could not be read, or not to their end */
            problems?: components["schemas"]["ReportedProblem"][];
        };
        ModelUsage: {
            /** @description provider/id; null: answers without a model */
            model: string | null;
            usage: components["schemas"]["Tokens"];
        };
        Moved: {
            branch: string;
            /** @description the entry from which the next one grows; null: the next one is a root */
            head: string | null;
            /** @description the branch that names the line that was left, where none did */
            kept?: string;
            /** @description the key was known: this is the first answer, and nothing was done */
            repeated?: boolean;
            /**
             * Format: int64
             * @description number of the commit; of the newest one if nothing was committed
             */
            seq: number;
        };
        NewCommit: {
            /** @description for the model; none = derived again */
            context?: components["schemas"]["ContextItem"][];
            /** @description session to create, if there is none */
            create?: components["schemas"]["NewSession"];
            /** @description documents by name; null removes */
            docs?: {
                [key: string]: unknown;
            };
            /** @description messages of any provider, or entries */
            entries?: unknown[];
            /** @description entry to move the head to; empty = before all */
            from?: string;
            /**
             * @description ref: entries have references
             * @enum {string}
             */
            images?: "inline" | "ref";
            /** @description as state, of the conversation manager */
            manager?: unknown;
            /** @enum {string} */
            onConflict?: "fail" | "keep-both" | "keep-fenced";
            /** @enum {string} */
            onKnownId?: "error" | "ignore" | "amend";
            reason?: string;
            /** @description absent = unchanged, null clears */
            state?: unknown;
        };
        NewHold: {
            /** @description at most 1 KiB */
            reason: string;
        };
        NewSession: {
            /** @description also under the id of a deleted session */
            again?: boolean;
            cwd?: string;
            meta?: {
                [key: string]: string;
            };
            /** @description the session that starts this one */
            parent?: string;
            /** @description what it is to its parent */
            relation?: string;
            title?: string;
        };
        NewToken: {
            /** @description one key: only for sessions with this value in their metadata */
            meta?: {
                [key: string]: string;
            };
            /** @description as in the token file, none that the one who asks has not */
            rights?: string;
            /**
             * Format: int64
             * @description for which it is valid, 1 to 86,400; default 3,600
             */
            seconds?: number;
            /** @description the one session that it is for */
            session?: string;
            /** @description the rights are read,write */
            write?: boolean;
        };
        NoBody: Record<string, never>;
        Node: {
            /** @description the amendment whose text preview and role are of */
            amendedBy?: string;
            /** @description an answer that ended in an error, or a result of a call that failed */
            failed?: boolean;
            id: string;
            label: string;
            /** @description on the path to the head */
            onPath: boolean;
            /**
             * Format: int64
             * @description number of the entry in the session
             */
            ordinal: number;
            /** @description the nearest ancestor that passes the filter; null: none */
            parentId: string | null;
            /** @description one line of at most 80 bytes */
            preview: string;
            role: string;
            /**
             * Format: int64
             * @description length of the entry's line as it was appended
             */
            size: number;
            /** Format: date-time */
            time: string;
            type: string;
            /** @description the amendment hides the entry */
            withdrawn?: boolean;
        };
        Omitted: {
            /**
             * Format: int64
             * @description of the messages from index from up to to, as they are stored
             */
            count: number;
            /** @description id of the entry of the first one */
            first: string;
            /**
             * Format: int64
             * @description index of the first one in the context, from 0
             */
            from: number;
            last: string;
            /**
             * Format: int64
             * @description index after the last one
             */
            to: number;
        };
        OpenCall: {
            /** @description null where the message has none */
            arguments: unknown;
            entry: string;
            id: string;
            name: string;
        };
        PartialBody: {
            /** @description what was streamed so far; null = nothing any more */
            partial: unknown;
        };
        Problem: {
            /** @description what went wrong, for programs */
            code: string;
            /** @description of outcome-unknown: the commit, as the log would have it */
            commit?: string;
            /** @description what went wrong, one line for people */
            detail: string;
            /** @description of conflict: the entries since the commit of If-Match */
            entries?: unknown[];
            /** @description what to do */
            hint?: string;
            /** @description of a deletion with children: what is not deleted */
            left?: string[];
            /** @description of conflict: entries are not all */
            more?: boolean;
            /** Format: int64 */
            status: number;
            /** @description the status in words */
            title: string;
            /** @description always about:blank: code says what went wrong */
            type: string;
            /** @description of conflict: the commit at the head */
            winner?: components["schemas"]["Commit"];
        };
        Prompt: {
            /** @description branches that contain the entry, at most 16 */
            branches: string[];
            cwd: string;
            entry: string;
            /** @description the path to the head contains the entry */
            onHead: boolean;
            /**
             * Format: int64
             * @description number of the entry in the session
             */
            ordinal: number;
            session: string;
            text: string;
            /** Format: date-time */
            time: string;
            title: string;
            /**
             * Format: int64
             * @description how often it was typed, in all sessions
             */
            uses: number;
        };
        PromptList: {
            /**
             * Format: double
             * @description how much is indexed, from 0 to 1; absent: all is
             */
            indexing?: number;
            /** @description after of the next page; absent at the end */
            next?: string;
            /** @description sessions that could not be read, or not to their end */
            problems?: components["schemas"]["ReportedProblem"][];
            /** @description newest first; one that was repeated directly is listed once */
            prompts: components["schemas"]["Prompt"][];
        };
        Purged: {
            /**
             * Format: int64
             * @description terminals that remembered it
             */
            crumbs: number;
            /** @description it was pinned */
            pin: boolean;
            /** @description names of items of the trash */
            trash: string[];
        };
        Relative: {
            /** @description that records their erasure; absent: they are not erased, or dryRun */
            commit?: string;
            /** @description small documents that it has too */
            docs?: string[];
            entries: string[];
            session: string;
            /** @description pointers that lead to a value in its states too */
            states?: string[];
        };
        Removal: {
            because: string[];
            /** Format: int64 */
            bytes: number;
            commit: string;
            name: string;
            session: string;
            /** Format: date-time */
            updated: string;
        };
        RenameBody: {
            branch: string;
            /** @description its new name; empty removes the name, and the entries stay */
            name: string;
        };
        Replaced: {
            /** @description in hex */
            after: string;
            /** @description in hex */
            before: string;
        };
        ReportedProblem: {
            /** @description what went wrong, for programs */
            code: string;
            /** @description what to do */
            hint?: string;
            /** @description what went wrong, one line for people */
            message: string;
        };
        Resume: {
            branch: string;
            /** @description id of the newest commit */
            commit: string;
            /** @description the messages of the bounded working context */
            context: unknown[];
            /** @description documents by name */
            docs?: {
                [key: string]: unknown;
            };
            /** @description the entry from which the next one grows; null: the next one is a root */
            head: string | null;
            /** @description requests to the backend */
            io: components["schemas"]["IO"];
            /** @description what the context manager keeps */
            manager?: unknown;
            /**
             * Format: int64
             * @description number of the newest commit that was made and is lost
             */
            missing?: number;
            /** @description tool calls of the context without a result */
            openCalls: components["schemas"]["OpenCall"][];
            /**
             * Format: int64
             * @description number of the newest commit
             */
            seq: number;
            session: string;
            /** @description the agent's state; null if it was never set */
            state: unknown;
            window: components["schemas"]["Window"];
        };
        Retained: {
            /**
             * Format: int64
             * @description of all objects of them
             */
            bytes: number;
            dryRun: boolean;
            /**
             * Format: int64
             * @description bytes of those that the policy leaves
             */
            left: number;
            /** @description it met its bound: another run continues */
            more?: boolean;
            /** @description what the policy does not keep, in the order in which it is removed */
            removals: components["schemas"]["Removal"][];
            /**
             * Format: int64
             * @description to the backend
             */
            requests: number;
            /**
             * Format: int64
             * @description that the store has
             */
            sessions: number;
            /** @description removals that were not done */
            stayed: components["schemas"]["Stay"][];
            /** @description of sessions that stay */
            thinned: components["schemas"]["Thinned"][];
        };
        Retention: {
            policy: components["schemas"]["Rules"];
        };
        RetentionRun: {
            /**
             * @description change nothing: the answer is what would be removed
             * @default true
             */
            dryRun: boolean;
        };
        Rollback: {
            branch: string;
            /** @description the entry from which the next one grows; null: the next one is a root */
            head: string | null;
            /** @description the branch that names the line that was left, where none did */
            kept?: string;
            /** @description the key was known: this is the first answer, and nothing was done */
            repeated?: boolean;
            /**
             * Format: int64
             * @description number of the commit; of the newest one if nothing was committed
             */
            seq: number;
            /** @description the state that was restored; null if it was never set */
            state: unknown;
        };
        Row: {
            /** @description the amendment whose text preview and role are of */
            amendedBy?: string;
            /**
             * Format: int64
             * @description number of rows directly below
             */
            children: number;
            /**
             * Format: int64
             * @description number of ancestors in the list
             */
            depth: number;
            /** @description an answer that ended in an error, or a result of a call that failed */
            failed?: boolean;
            folded: boolean;
            /**
             * Format: int64
             * @description of a folded row: number of entries below it
             */
            hidden: number;
            id: string;
            /**
             * Format: int64
             * @description number of forks on the path
             */
            indent: number;
            label: string;
            /**
             * Format: date-time
             * @description when the label was set; null: there is none
             */
            labelTime: string | null;
            /** @description on the path to the head */
            onPath: boolean;
            /**
             * Format: int64
             * @description number of the entry in the session
             */
            ordinal: number;
            /** @description the nearest ancestor that passes the filter; null: none */
            parentId: string | null;
            /** @description one line of at most 80 bytes */
            preview: string;
            role: string;
            /**
             * Format: int64
             * @description length of the entry's line as it was appended
             */
            size: number;
            /** Format: date-time */
            time: string;
            type: string;
            /**
             * Format: int64
             * @description place among the rows with the same parent, from 1
             */
            version: number;
            /**
             * Format: int64
             * @description number of rows with the same parent
             */
            versions: number;
            /** @description the amendment hides the entry */
            withdrawn?: boolean;
        };
        RowList: {
            /**
             * Format: int64
             * @description of around: the row of the entry, or of its nearest ancestor that has one
             */
            at?: number;
            branches: components["schemas"]["Branch"][];
            /** @description over HTTP: why what is drawn is only what is intact */
            cause?: string;
            /** Format: int64 */
            from: number;
            /** @description the entry from which the next one grows */
            head: string | null;
            /** @description the nearest ancestor of the head that is in the list, if it is not */
            headAt?: string;
            /**
             * Format: int64
             * @description number of the newest commit that was made and is lost
             */
            missing?: number;
            rows: components["schemas"]["Row"][];
            /** @description the selected entry, or its nearest ancestor that is shown */
            selected?: string;
            /**
             * Format: int64
             * @description the number of rows
             */
            total: number;
            /** @description names these rows in further requests; 410 once it is gone */
            view: string;
        };
        Rules: {
            /** @description with keepLast: the metadata key of the groups, not the folder */
            groupBy?: string;
            /**
             * Format: int64
             * @description so many of each group stay, those of the newest activity
             */
            keepLast?: number;
            /**
             * Format: int64
             * @description seconds: sessions that were active within them stay
             */
            keepWithin?: number;
            /**
             * Format: int64
             * @description others go only while the store has more bytes
             */
            maxBytes?: number;
            /** @description which snapshots of each session stay; absent = all */
            snapshots?: components["schemas"]["Snapshots"];
        };
        SecretAt: {
            /** Format: int64 */
            count: number;
            /** @description its id */
            entry?: string;
            /**
             * @description session = title, directory and metadata
             * @enum {string}
             */
            in: "entry" | "session" | "state" | "document";
            /** @description such as github-pat */
            rule: string;
        };
        SecretList: {
            /** @description after of the page that follows, also of an empty one */
            next?: string;
            /** @description in the order of appending; never the credentials */
            secrets: components["schemas"]["SecretAt"][];
        };
        Session: {
            branch: string;
            /**
             * Format: int64
             * @description size of the raw transcript
             */
            bytes: number;
            /** @description of a damaged session: why it cannot be read */
            cause?: string;
            /** Format: date-time */
            created: string;
            /** @description the working directory */
            cwd: string;
            /** @description it lost commits (missing), or only id and updated are known */
            damaged?: boolean;
            /** @description in a list over HTTP: the documents that it asks for */
            docs?: {
                [key: string]: unknown;
            };
            /**
             * Format: int64
             * @description number of entries, commits not counted
             */
            entries: number;
            /** @description one line of the first prompt */
            first?: string;
            /** @description the entry from which the next one grows; null: the next one is a root */
            head: string | null;
            id: string;
            /** @description an agent started it for its own purposes */
            internal?: boolean;
            /** @description metadata, as it was set */
            meta?: {
                [key: string]: string;
            };
            /**
             * Format: int64
             * @description number of the newest commit that was made and is lost
             */
            missing?: number;
            /** @description the session that started this one */
            parent?: string;
            /** @description one line of the newest message */
            preview: string;
            /** @description what it is to its parent: fork, agent, or a word of its creator */
            relation?: string;
            /**
             * Format: int64
             * @description number of the newest commit, from 0
             */
            seq: number;
            /** @description asked, calling, working, answered, failed or aborted */
            status?: string;
            title: string;
            /**
             * Format: date-time
             * @description the time of the newest activity
             */
            updated: string;
        };
        SessionChange: {
            cwd?: string;
            /** @description by key; null removes it, and keys that are absent stay */
            meta?: {
                [key: string]: string | null;
            };
            title?: string;
        };
        SessionList: {
            /**
             * Format: int64
             * @description of the catalogue that answered, in seconds; else absent
             */
            age?: number;
            /** @description why the list is cut short after its first item */
            error?: components["schemas"]["Problem"];
            /** @description after of the next page; absent at the end */
            next?: string;
            sessions: components["schemas"]["Session"][];
        };
        SessionUsage: {
            /** Format: date-time */
            created: string;
            cwd: string;
            /** @description not all of it can be read: what it used is more, or not known */
            damaged?: boolean;
            /** @description of usage, by day of the answer, oldest first, at most the newest 1,024 */
            days: components["schemas"]["DayUsage"][];
            /**
             * Format: int64
             * @description number of entries that were read
             */
            entries: number;
            /**
             * Format: int64
             * @description number of entries that failed: answers, results of calls
             */
            failed?: number;
            /** @description of copies of answers that other sessions received */
            inherited?: components["schemas"]["Tokens"];
            /** @description of usage, by model, in the order of their names */
            models: components["schemas"]["ModelUsage"][];
            /** @description the session that started this one */
            parent?: string;
            /** @description how the cost grew, oldest first, at most 512; only on request */
            points?: components["schemas"]["CostAt"][];
            /** @description what it is to its parent, such as agent or fork */
            relation?: string;
            /**
             * @description session: all branches; path: one path
             * @enum {string}
             */
            scope: "session" | "path";
            session: string;
            title: string;
            /** Format: date-time */
            updated: string;
            /** @description of the answers that this session received */
            usage: components["schemas"]["Tokens"];
        };
        Snapshot: {
            /** Format: int64 */
            bytes: number;
            commit: string;
            id: string;
            /** @description because of damage, no other copy of the state exists */
            only?: boolean;
            /** @description that of the commit */
            reason: string;
            /** Format: int64 */
            seq: number;
            tag: string;
            /** Format: date-time */
            time: string;
        };
        SnapshotBody: {
            tag?: string;
        };
        SnapshotList: {
            /** @description newest first */
            snapshots: components["schemas"]["Snapshot"][];
        };
        Snapshots: {
            /**
             * Format: int64
             * @description the newest of each of so many days that have one
             */
            keepDaily?: number;
            /**
             * Format: int64
             * @description the newest
             */
            keepLast?: number;
            /** @description with one of these tags; * = with any */
            keepTags?: string[];
            /**
             * Format: int64
             * @description the newest of each of so many weeks that have one
             */
            keepWeekly?: number;
        };
        Stay: {
            /** @description conflict (it was changed) or held; also of what it belongs with */
            reason: string;
            session: string;
        };
        Stored: {
            /**
             * Format: int64
             * @description of transcripts as lines; of images, snapshots, originals and trash as stored
             */
            bytes: number;
            /** Format: int64 */
            maxBytes?: number;
            /**
             * Format: int64
             * @description the quota of the tenant; absent: none
             */
            maxSessions?: number;
            /** Format: int64 */
            sessions: number;
        };
        SwitchBody: {
            /** @description a branch, or an entry: then the newest leaf below it */
            to: string;
        };
        TargetBody: {
            /** @description a target, as at of state */
            to: string;
        };
        Thinned: {
            session: string;
            snapshots: components["schemas"]["Snapshot"][];
        };
        Tokens: {
            /**
             * Format: int64
             * @description number of responses of providers
             */
            answers: number;
            /** Format: int64 */
            cacheRead: number;
            /** Format: int64 */
            cacheWrite: number;
            /**
             * Format: double
             * @description in the currency of the program that wrote it; 0: none did
             */
            cost: number;
            /**
             * Format: int64
             * @description without tokens read from or written to a cache
             */
            input: number;
            /**
             * Format: int64
             * @description including reasoning
             */
            output: number;
            /** Format: int64 */
            reasoning: number;
            /** Format: int64 */
            total: number;
        };
        TreeMap: {
            /** @description stretches of rows, in their order */
            buckets: components["schemas"]["Bucket"][];
            /** @description why what is drawn is only what is intact */
            cause?: string;
            /** @description on request: the newest 1,000, in the order of appending */
            failures?: components["schemas"]["Failure"][];
            /**
             * Format: int64
             * @description the one after near, around the end; absent: none
             */
            nextHit?: number;
            /**
             * Format: int64
             * @description the one before near
             */
            previousHit?: number;
            /** Format: int64 */
            total: number;
            view: string;
        };
        Usage: {
            /** @description of usage, by day of the answer, oldest first, at most the newest 1,024 */
            days: components["schemas"]["DayUsage"][];
            /**
             * Format: int64
             * @description number of entries that were read
             */
            entries: number;
            /**
             * Format: int64
             * @description number of entries that failed: answers, results of calls
             */
            failed?: number;
            /** @description of copies of answers that other sessions received */
            inherited?: components["schemas"]["Tokens"];
            /** @description of usage, by model, in the order of their names */
            models: components["schemas"]["ModelUsage"][];
            /** @description how the cost grew, oldest first, at most 512; only on request */
            points?: components["schemas"]["CostAt"][];
            /**
             * @description session: all branches; path: one path
             * @enum {string}
             */
            scope: "session" | "path";
            session: string;
            /** @description of the answers that this session received */
            usage: components["schemas"]["Tokens"];
        };
        UsageList: {
            /** @description why the list is cut short after its first item */
            error?: components["schemas"]["Problem"];
            /** @description after of the next page; absent at the end */
            next?: string;
            /** @description in the order of the list of sessions */
            sessions: components["schemas"]["SessionUsage"][];
            /** @description all of the store, on the first page; not as NDJSON */
            stored?: components["schemas"]["Stored"];
        };
        Verify: {
            /**
             * Format: int64
             * @description number of bytes that were read
             */
            bytes: number;
            /** @description every byte was read */
            deep: boolean;
            /** @description requests to the backend */
            io: components["schemas"]["IO"];
            /** Format: int64 */
            objects: number;
            /** @description damage, and notes on what is intact */
            problems: components["schemas"]["Damage"][];
            /**
             * Format: int64
             * @description number of sessions that were checked
             */
            sessions: number;
        };
        VerifyBody: {
            /** @description read every byte */
            deep?: boolean;
        };
        Versions: {
            /**
             * Format: int64
             * @description the place of the entry that was asked for, from 0
             */
            at: number;
            /** @description oldest first */
            versions: components["schemas"]["Node"][];
        };
        Window: {
            /** @description false: older entries were omitted */
            complete: boolean;
            /** Format: int64 */
            omittedEntries: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    metrics: {
        responses: {
            /** @description OK */
            200: {
                content: {
                    "text/plain": unknown;
                };
            };
        };
    };
    access: {
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["AccessDoc"];
                };
            };
        };
    };
    queryEntries: {
        parameters: {
            query?: {
                /** @description only these sessions, separated by commas; absent ones are passed over */
                session?: string;
                /** @description only sessions whose ids begin so */
                prefix?: string;
                /** @description only sessions of this working directory */
                cwd?: string;
                /** @description only sessions that this one started */
                parent?: string;
                /** @description only entries of this type: message, custom, ... */
                type?: string;
                /** @description only entries with this customType; with type=custom no other body is read */
                custom?: string;
                /** @description only entries whose ids sort before this one, byte by byte */
                before?: string;
                /** @description desc: newest first, sessions by their ids */
                order?: "asc" | "desc";
                /** @description next of another page, or cursor of an entry, of the same query */
                after?: string;
                /** @description of the page; all: every item in one answer, which has no next */
                limit?: number | "all";
                /** @description ref: images over 24 KiB as references */
                images?: "inline" | "ref";
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["FoundList"];
                    "application/x-ndjson": unknown;
                };
            };
        };
    };
    health: {
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
        };
    };
    import: {
        parameters: {
            query?: {
                /** @description id of the new session; default that of the file if it is free */
                session?: string;
                /** @description default: by the content */
                format?: "pi" | "omp" | "atomic" | "operator" | "claude-code" | "codex";
                /** @description name of the file, which some formats need */
                name?: string;
                /** @description import what the store has, or had, under a new id */
                again?: boolean;
                /** @description append what was added to a file to its session */
                grow?: boolean;
            };
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Import"];
                };
            };
        };
    };
    openapi: {
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    prompts: {
        parameters: {
            query?: {
                /** @description as of search; empty = all prompts */
                q?: string;
                /** @description q is the beginning of the prompt */
                prefix?: boolean;
                /** @description only sessions of this working directory */
                cwd?: string;
                /** @description only this session */
                session?: string;
                /** @description next of the page before */
                after?: string;
                limit?: number;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["PromptList"];
                };
            };
        };
    };
    getRetention: {
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Retention"];
                };
            };
        };
    };
    setRetention: {
        requestBody: {
            content: {
                "application/json": components["schemas"]["Rules"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Retention"];
                };
            };
        };
    };
    runRetention: {
        requestBody: {
            content: {
                "application/json": components["schemas"]["RetentionRun"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Retained"];
                };
            };
        };
    };
    search: {
        parameters: {
            query?: {
                /** @description words, all of them; in quotes adjacent; re: = a regular expression */
                q?: string;
                /** @description only sessions of this working directory */
                cwd?: string;
                /** @description only this session */
                session?: string;
                /** @description next of the page before */
                after?: string;
                limit?: number;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["MatchList"];
                };
            };
        };
    };
    listSessions: {
        parameters: {
            query?: {
                /** @description only sessions of this working directory */
                cwd?: string;
                /** @description only sessions that this one started */
                parent?: string;
                /** @description only sessions that no other one started: those without a parent, and forks */
                top?: boolean;
                /** @description only sessions whose title, first prompt or preview contains all these words */
                q?: string;
                /** @description newest first, or by stored name */
                order?: "activity" | "created" | "id";
                /** @description next of the page before, in the same order */
                after?: string;
                limit?: number;
                /** @description list every session; else one by activity may miss recent work */
                exact?: boolean;
                /** @description names of documents that come with each session, at most 64, separated by commas */
                docs?: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["SessionList"];
                    "application/x-ndjson": unknown;
                };
            };
        };
    };
    getSession: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    createSession: {
        parameters: {
            header?: {
                /** @description must be * */
                "If-None-Match"?: string;
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSession"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                content: {
                    "application/json": components["schemas"]["Created"];
                };
            };
        };
    };
    deleteSession: {
        parameters: {
            query?: {
                /** @description keep a copy in the trash of the server */
                trash?: boolean;
                /** @description delete the sessions that it started too */
                children?: boolean;
                /** @description remove also what the server keeps of it, and name what keeps copies */
                purge?: boolean;
            };
            header?: {
                /** @description the commit that this was made on, or * = the newest; without it 428 */
                "If-Match"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
        };
    };
    changeSession: {
        parameters: {
            header?: {
                /** @description the commit that this was made on; default * = the newest */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SessionChange"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    amend: {
        parameters: {
            header?: {
                /** @description the commit that this was made on; default * = the newest */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AmendBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    blame: {
        parameters: {
            query?: {
                /** @description a JSON pointer into the state (RFC 6901); empty = the whole state */
                path?: string;
                /** @description a target: only changes up to the commit in force there; default head */
                at?: string;
                /** @description next of the page before */
                after?: string;
                /** @description of changes */
                limit?: number;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["BlameList"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    blob: {
        parameters: {
            header?: {
                /** @description bytes */
                Range?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
                /** @description of the image's bytes: 64 hex digits, as an entry refers to it with images=ref */
                sha256: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/octet-stream": unknown;
                    "image/gif": unknown;
                    "image/jpeg": unknown;
                    "image/png": unknown;
                    "image/webp": unknown;
                };
            };
            /** @description Partial Content */
            206: {
                content: {
                    "application/octet-stream": unknown;
                    "image/gif": unknown;
                    "image/jpeg": unknown;
                    "image/png": unknown;
                    "image/webp": unknown;
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    upload: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
                /** @description of the bytes: 64 lower-case hex digits */
                sha256: string;
            };
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description No Content */
            204: {
            };
        };
    };
    branch: {
        parameters: {
            header?: {
                /** @description the commit that this was made on, or * = the newest; without it 428 */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BranchBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    branches: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["BranchList"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    claim: {
        parameters: {
            header?: {
                /** @description the commit that this was made on; default * = the newest */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NoBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    listCommits: {
        parameters: {
            query?: {
                /** @description a target: the page begins at the commit in force there; default head */
                at?: string;
                /** @description next of another page */
                after?: string;
                /** @description prev of another page */
                before?: string;
                limit?: number;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["CommitList"];
                    "application/x-ndjson": unknown;
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    commit: {
        parameters: {
            query?: {
                /** @description the program whose lines the entries are */
                format?: "claude-code" | "codex";
            };
            header?: {
                /** @description the commit that this was made on, or * = the newest; without it 428 */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCommit"];
                "application/x-ndjson": unknown;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Committed"];
                };
            };
        };
    };
    getCommit: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
                /** @description the number of the commit */
                seq: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Commit"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    compact: {
        parameters: {
            header?: {
                /** @description the commit that this was made on, or * = the newest; without it 428 */
                "If-Match"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompactBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Compacted"];
                };
            };
        };
    };
    context: {
        parameters: {
            query?: {
                /** @description a target; default head */
                at?: string;
                /** @description of the request */
                provider?: "anthropic" | "openai-chat" | "openai-responses" | "gemini";
                /** @description who runs the provider's API, as messages name it */
                vendor?: string;
                /** @description messages of a page, of at most 4 MiB; 0 = all */
                limit?: number;
                /** @description next of another page of the same context */
                after?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Context"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    diff: {
        parameters: {
            query: {
                /** @description a target, as at of state */
                a: string;
                /** @description a target; default head */
                b?: string;
                /** @description entries of each path, the first ones */
                limit?: number;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Diff"];
                };
            };
        };
    };
    docs: {
        parameters: {
            query?: {
                /** @description a target: seq:N, commit:ID, entry:ID, snap:ID, tag:NAME, a branch, a time; default head */
                at?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["DocList"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    getDoc: {
        parameters: {
            query?: {
                /** @description a target, as at of state; default head */
                at?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
                /** @description the document's name, percent-encoded where it has a slash */
                name: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": unknown;
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    edit: {
        parameters: {
            header?: {
                /** @description the commit that this was made on, or * = the newest; without it 428 */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    listEntries: {
        parameters: {
            query?: {
                /** @description head (the default), all = every entry as appended, or the entry at the path's end */
                path?: string;
                /** @description asc: root first, or as appended */
                order?: "asc" | "desc";
                /** @description next of another page */
                after?: string;
                /** @description prev of another page */
                before?: string;
                /** @description of the page; all: every item in one answer, which has no next */
                limit?: number | "all";
                /** @description the entry to begin with, in this order; 422 if it is not on the path */
                from?: string;
                /** @description only entries of this type: message, custom, ... */
                type?: string;
                /** @description only entries with this customType */
                custom?: string;
                /** @description the path continues to the newest leaf below its entry, as switch does */
                below?: boolean;
                /** @description only these entries, in this order, separated by commas */
                ids?: string;
                /** @description ref: images over 24 KiB as references */
                images?: "inline" | "ref";
                /** @description beside the entries, which versions and continuations each has; not as NDJSON */
                marks?: boolean;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["EntryList"];
                    "application/x-ndjson": unknown;
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    getEntry: {
        parameters: {
            query?: {
                /** @description ref: images over 24 KiB as references */
                images?: "inline" | "ref";
            };
            path: {
                /** @description the session's id */
                id: string;
                /** @description the entry's id, or a unique prefix of it */
                entry: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    erase: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EraseBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Erased"];
                };
            };
        };
    };
    events: {
        parameters: {
            query?: {
                /** @description the seq after which to begin; default the newest. Last-Event-ID goes before it */
                after?: string;
                /** @description instead of a stream, wait so many seconds for commits */
                wait?: number;
            };
            header?: {
                /** @description the id of the last event that was received: it goes before after */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Events"];
                    "text/event-stream": unknown;
                };
            };
        };
    };
    export: {
        parameters: {
            query?: {
                format?: "pi" | "original" | "omp" | "atomic" | "operator" | "claude-code" | "codex" | "markdown" | "html";
                /** @description treatment of credentials */
                secrets?: "refuse" | "redact" | "allow";
                /** @description markdown and html: only the path to this entry; default every branch */
                line?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/x-ndjson": unknown;
                    "text/html": unknown;
                    "text/markdown": unknown;
                };
            };
        };
    };
    fork: {
        parameters: {
            header?: {
                /** @description the commit that this was made on, or * = the newest; without it 428 */
                "If-Match"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForkBody"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                content: {
                    "application/json": components["schemas"]["Fork"];
                };
            };
        };
    };
    hide: {
        parameters: {
            header?: {
                /** @description the commit that this was made on; default * = the newest */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HideBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    hold: {
        parameters: {
            header?: {
                /** @description the commit that this was made on; default * = the newest */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewHold"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    release: {
        parameters: {
            header?: {
                /** @description the commit that this was made on; default * = the newest */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    label: {
        parameters: {
            header?: {
                /** @description the commit that this was made on; default * = the newest */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LabelBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    labels: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["LabelList"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    map: {
        parameters: {
            query?: {
                /** @description as of rows */
                view?: string;
                filter?: "default" | "no-tools" | "user-only" | "labeled-only" | "all";
                search?: string;
                fold?: string;
                buckets?: number;
                /** @description words: hits counts the rows whose entries contain all of them */
                mark?: string;
                /** @description also a list of the entries that failed */
                failures?: boolean;
                /** @description a row: nextHit and previousHit are those around it */
                near?: number;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["TreeMap"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    original: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/octet-stream": unknown;
                };
            };
        };
    };
    partial: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PartialBody"];
            };
        };
        responses: {
            /** @description No Content */
            204: {
            };
        };
    };
    renameBranch: {
        parameters: {
            header?: {
                /** @description the commit that this was made on; default * = the newest */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RenameBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    resume: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Resume"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    rollback: {
        parameters: {
            header?: {
                /** @description the commit that this was made on, or * = the newest; without it 428 */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TargetBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Rollback"];
                };
            };
        };
    };
    rows: {
        parameters: {
            query?: {
                /** @description the view of another answer: the same rows, whatever was committed since */
                view?: string;
                filter?: "default" | "no-tools" | "user-only" | "labeled-only" | "all";
                /** @description only entries that contain all these words */
                search?: string;
                /** @description ids of entries below which nothing is shown, separated by commas */
                fold?: string;
                /** @description the first row */
                from?: number;
                /** @description instead of from: an entry, or a unique prefix of its id, to be in the middle */
                around?: string;
                count?: number;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["RowList"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    secrets: {
        parameters: {
            query?: {
                /** @description next of the page before */
                after?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["SecretList"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    snapshot: {
        parameters: {
            header?: {
                /** @description the commit that this was made on, or * = the newest; without it 428 */
                "If-Match"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SnapshotBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Snapshot"];
                };
            };
        };
    };
    snapshots: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["SnapshotList"];
                };
            };
        };
    };
    state: {
        parameters: {
            query?: {
                /** @description a target: seq:N, commit:ID, entry:ID, snap:ID, tag:NAME, a branch, a time; default head */
                at?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": unknown;
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    switch: {
        parameters: {
            header?: {
                /** @description the commit that this was made on, or * = the newest; without it 428 */
                "If-Match"?: string;
                /** @description stored once however often sent; 1,024 are known */
                "Idempotency-Key"?: string;
                /** @description who writes; a claim fences the other writers */
                "Coppice-Writer"?: string;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SwitchBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Moved"];
                };
            };
        };
    };
    usage: {
        parameters: {
            query?: {
                /** @description a target: only the path that ends there, without other branches; not with points */
                at?: string;
                /** @description also how the cost grew from commit to commit */
                points?: boolean;
            };
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Usage"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    verify: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VerifyBody"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Verify"];
                };
            };
        };
    };
    versions: {
        parameters: {
            path: {
                /** @description the session's id */
                id: string;
                /** @description the entry's id, or a unique prefix of it */
                entry: string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["Versions"];
                };
            };
            /** @description Not Modified */
            304: {
            };
        };
    };
    issueToken: {
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewToken"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                content: {
                    "application/json": components["schemas"]["IssuedToken"];
                };
            };
        };
    };
    allUsage: {
        parameters: {
            query?: {
                /** @description only sessions of this working directory */
                cwd?: string;
                /** @description only sessions that this one started */
                parent?: string;
                /** @description only sessions that no other one started: those without a parent, and forks */
                top?: boolean;
                /** @description only sessions whose title, first prompt or preview contains all these words */
                q?: string;
                /** @description newest first, or by stored name */
                order?: "activity" | "created" | "id";
                /** @description next of the page before, in the same order */
                after?: string;
                limit?: number;
            };
        };
        responses: {
            /** @description OK */
            200: {
                content: {
                    "application/json": components["schemas"]["UsageList"];
                    "application/x-ndjson": unknown;
                };
            };
        };
    };
}
