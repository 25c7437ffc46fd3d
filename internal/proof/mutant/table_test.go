package mutant

// edit is one replacement in one file of the module.
type edit struct{ file, old, broken string }

// mutant is a protocol with one fault, and the suite that must detect it.
type mutant struct {
	name   string
	broken string // the fault
	edits  []edit
	suite  string // that catches it
	pkg    string // its folder
	run1   string // which of its tests
	size   string // COPPICE_PROOF for it: "" if a quick run finds it
	want   string // text of the finding by which it is caught
	sample bool   // `make mutants-sample` includes it: a cheap one of each suite
}

const (
	replaceGo       = "internal/journal/replace.go"
	gcGo            = "internal/gc/gc.go"
	appendGo        = "backend/local/append.go"
	rewriteGo       = "internal/repair/rewrite.go"
	repairGo        = "internal/repair/repair.go"
	mendGo          = "internal/journal/append_torn.go"
	dirsGo          = "internal/vfs/dirs.go"
	sealGo          = "internal/journal/store/seal.go"
	composeGo       = "internal/journal/compose.go"
	commitGo        = "internal/journal/commit.go"
	judgeGo         = "internal/journal/judge.go"
	requestGo       = "internal/journal/request.go"
	doubtGo         = "internal/journal/doubt.go"
	lockGo          = "internal/journal/lock.go"
	entryGo         = "internal/journal/entry.go"
	appendJournalGo = "internal/journal/append.go"
	recoverGo       = "internal/journal/append_recover.go"
	journalGo       = "internal/journal/journal.go"
	deleteGo        = "internal/journal/delete.go"
	storeGo         = "internal/journal/store/store.go"
	keysGo          = "internal/journal/keys.go"
	moveGo          = "move.go"
	stateGo         = "internal/journal/state/state.go"
	commitsGo       = "server/commits.go"
	eventsGo        = "server/events.go"
)

var mutants = []mutant{
	{
		name: "unconditional-put", broken: "a commit's PUT carries no condition",
		edits: []edit{{replaceGo, "\t\tcond: backend.IfMatch(base.Version),\n", "\t\tcond: backend.Cond{},\n"}},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace",
		want: "stands 0 times in the log (I1)",
	},
	{
		name: "412-is-failed", broken: "a 412 after a lost answer counts as a failure, without a read",
		edits: []edit{{replaceGo, "case errors.Is(err, backend.ErrPrecondition):\n", "case errors.Is(err, backend.ErrPrecondition):\n\t\t\treturn nil, err\n"}},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace",
		want: "was reported as not applied, and stands 1 times in the log (I2)",
	},
	{
		name: "acknowledge-before-answer", broken: "a commit whose answer was lost is acknowledged",
		edits: []edit{{replaceGo, "\t\tdefault:\n\t\t\tp.doubt = err\n", "\t\tdefault:\n\t\t\treturn p.done(\"\"), nil\n"}},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace",
		want: "stands 0 times in the log (I1)",
	},
	{
		name:   "unknown-is-failed",
		broken: "a commit with an unknown outcome is reported as not applied, and the handle continues",
		edits:  []edit{{replaceGo, "\toutcome := backend.Unknown\n", "\toutcome := backend.NotApplied\n"}},
		suite:  "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace", size: "ci",
		want: "was reported as not applied, and stands 1 times in the log (I2)",
	},
	{
		name: "settle-does-not-confirm", broken: "a request in doubt that is found is acknowledged before the log is durable",
		edits: []edit{{doubtGo, "\t\tif now.Summary.Commit != \"\" {\n\t\t\tif now, err = j.strategy.Harden", "\t\tif now == nil {\n\t\t\tif now, err = j.strategy.Harden"}},
		suite: "faults", pkg: "internal/proof/crash", run1: "TestProofFaults", size: "ci",
		want: "they are there 0 and 0 times",
	},
	{
		name: "settle-does-not-look", broken: "a request in doubt counts as lost without looking for it",
		edits: []edit{{doubtGo, "\tif now.Has(rec.ID) {\n", "\tif now == nil {\n"}},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace", size: "ci",
		want: "was reported as not applied, and stands 1 times in the log (I2)",
	},
	{
		name: "repeated-bodies", broken: "commit ids are not fresh: equal turns give equal bodies and equal versions",
		edits: []edit{
			{composeGo, "\tid, err := transcript.NewID(now, r.cfg.Rand)\n", "\tnow = time.Unix(0, 0).UTC()\n\tid, err := transcript.NewID(now, zeros{})\n"},
			{composeGo, "// line is a commit line with", "type zeros struct{}\n\nfunc (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }\n\n// line is a commit line with"},
		},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace",
		want: "stands twice in the log",
	},
	{
		name: "dense-names", broken: "a segment is named by its first ordinal alone",
		edits: []edit{{sealGo, "Epoch: st.Summary.Epoch, Rnd: rnd}\n", "Rnd: rnd[:0] + layout.FirstRandom}\n"}},
		suite: "simulation", pkg: "internal/proof/sim", run1: "TestProofSimulation",
		want: "the name is taken by other bytes",
	},
	{
		name: "gc-without-epochs", broken: "a collection removes all that the head does not reach",
		edits: []edit{{gcGo, "case c.keep[cand.key] || cand.seg.Epoch >= c.epoch:", "case c.keep[cand.key]:"}},
		suite: "simulation", pkg: "internal/proof/sim", run1: "TestProofSimulation",
		want: "the newest head refers to it, but it is missing",
	},
	{
		name: "epochs-stand-still", broken: "a new writer does not take a new epoch",
		edits: []edit{{composeGo, "\t\tr.epoch++\n", "\t\tr.epoch += 0\n"}},
		suite: "simulation", pkg: "internal/proof/sim", run1: "TestProofSimulation",
		want: "garbage stays",
	},
	{
		name: "entry-changed", broken: "a commit stores other bytes than it was given, and reads them back without fault",
		edits: []edit{{composeGo, "\t\tp.r.bytes = append(append(p.r.bytes, e.Raw...), '\\n')\n", "\t\te.Raw = bytes.Replace(e.Raw, []byte(`content\":\"a`), []byte(`content\":\"b`), 1)\n\t\tp.r.bytes = append(append(p.r.bytes, e.Raw...), '\\n')\n"}},
		suite: "crash", pkg: "internal/proof/crash", run1: "TestProofCrash",
		want: "is not what was given",
	},
	{
		name: "no-directory-sync", broken: "a new name is not made durable",
		edits: []edit{{dirsGo, "\td, err := f.OpenDir(dir)\n", "\tif dir != \"\" {\n\t\treturn nil\n\t}\n\td, err := f.OpenDir(dir)\n"}},
		suite: "crash", pkg: "internal/proof/crash", run1: "TestProofCrash",
		want: "commits were acknowledged, 0 are there",
	},
	{
		name: "acknowledge-before-sync", broken: "an append returns before its bytes are on the disk",
		edits: []edit{{appendGo, "if err := d.file.Datasync(); err != nil {\n\t\td.dropFile()\n\t\treturn vfs.Stat{}", "if err := error(nil); err != nil {\n\t\td.dropFile()\n\t\treturn vfs.Stat{}"}},
		suite: "crash", pkg: "internal/proof/crash", run1: "TestProofCrash",
		want: "commits were acknowledged,",
	},
	{
		name: "retried-sync", broken: "a failed sync is tried again, and the second answer believed",
		edits: []edit{{appendGo, "if err := d.file.Datasync(); err != nil {\n\t\td.dropFile()\n\t\treturn vfs.Stat{}", "if err := d.file.Datasync(); err != nil && d.file.Datasync() != nil {\n\t\td.dropFile()\n\t\treturn vfs.Stat{}"}},
		suite: "faults", pkg: "internal/proof/crash", run1: "TestProofFaults",
		want: "was synced again after a failed sync",
	},
	{
		name: "unsynced-bytes-believed", broken: "bytes that another writer left after a failed sync are not written again before a commit builds on them",
		edits: []edit{{appendGo, "\tif err := rewrite(f, off, size); err != nil {\n", "\tif err := error(nil); err != nil {\n"}},
		suite: "faults", pkg: "internal/proof/crash", run1: "TestProofFaults", size: "ci",
		want: "they are there 0 and 0 times",
	},
	{
		name: "torn-tail-stays", broken: "bytes of a torn append are left in front of the next one",
		edits: []edit{{mendGo, "if err != nil || rest == 0 || now.Summary.Seq > base.Summary.Seq {", "if err != nil || rest >= 0 {"}},
		suite: "crash", pkg: "internal/proof/crash", run1: "TestProofCrash",
		want: "the next commit fails: commit s1: the head moved 4 times in a row",
	},
	{
		name: "cut-without-judgement", broken: "damaged bytes on which commits were built are cut off as a torn tail",
		edits: []edit{{mendGo, "if err := a.checkTorn(ctx, base, torn); err != nil {", "if err := error(nil); err != nil {"}},
		suite: "journal", pkg: "internal/journal", run1: "TestDamagedLaterCommitIsNotTorn",
		want: "want ErrCorrupt and the log as it was",
	},
	{
		name: "unknown-does-not-stop", broken: "a handle continues after a commit whose outcome is unknown",
		edits: []edit{{doubtGo, "\t\treturn j.notApplied(\"commit\", ErrInDoubt)\n\t}\n\tif _, err := j.end", "\t\treturn nil\n\t}\n\tif _, err := j.end"}},
		suite: "faults", pkg: "internal/proof/crash", run1: "TestProofFaults",
		want: "a turn that names no base got",
	},
	{
		name: "plain-removed-early", broken: "a plain segment goes before its sealed form is written",
		edits: []edit{{"internal/journal/append_upkeep.go", "\t\tif c := closed[i]; c != nil {\n", "\t\tif c := closed[i]; c != nil {\n\t\t\t_ = a.b.Delete(ctx, store.SegmentOf(&refs[i]).PlainKey(a.cfg.Session))\n"}},
		suite: "crash", pkg: "internal/proof/crash", run1: "TestProofCrash",
		want: "commits were acknowledged, 0 are there",
	},
	{
		name: "failed-sync-is-not-applied", broken: "an append whose sync failed is reported as not applied",
		edits: []edit{{appendGo, "\t\treturn vfs.Stat{}, backend.Unknown, vfs.Step(\"sync\", err)\n", "\t\treturn vfs.Stat{}, backend.NotApplied, vfs.Step(\"sync\", err)\n"}},
		suite: "faults", pkg: "internal/proof/crash", run1: "TestProofFaults",
		want: "was reported as not applied and is in the history",
	},
	{
		sample: true, name: "state-overwrites", broken: "a turn that moved only the document does not count as a conflict",
		edits: []edit{{judgeGo, "a.Branch == st.Summary.Branch && a.sameDocument(st)\n", "(a.Branch == st.Summary.Branch || a.sameDocument(st))\n"}},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace", size: "ci",
		want: "which its writer never saw",
	},
	{
		name: "state-overwrites-simulated", broken: "the same, in the simulation",
		edits: []edit{{judgeGo, "a.Branch == st.Summary.Branch && a.sameDocument(st)\n", "(a.Branch == st.Summary.Branch || a.sameDocument(st))\n"}},
		suite: "simulation", pkg: "internal/proof/sim", run1: "TestProofSimulation",
		want: "which its writer never saw",
	},
	{
		name: "rebuild-without-branches", broken: "a keyframe does not hold the table of branches",
		edits: []edit{{stateGo, "\t\tBranches: st.Branches, Title:", "\t\tTitle:"}},
		suite: "journal", pkg: "internal/journal", run1: "TestRebuildLosesNothing", want: "(-with, +without a checkpoint)",
	},
	{
		name: "rebuild-without-title", broken: "a keyframe does not hold the title",
		edits: []edit{{stateGo, "Title: st.Summary.Title, Cwd:", "Cwd:"}},
		suite: "journal", pkg: "internal/journal", run1: "TestRebuildLosesNothing", want: "(-with, +without a checkpoint)",
	},
	{
		name: "rebuild-without-claims", broken: "a keyframe does not hold the newest claim",
		edits: []edit{{stateGo, " Claimed: st.Claimed, HeadOrd: st.HeadOrd,", " HeadOrd: st.HeadOrd,"}},
		suite: "journal", pkg: "internal/journal", run1: "TestRebuildLosesNothing", want: "(-with, +without a checkpoint)",
	},
	{
		name: "rebuild-without-original", broken: "a keyframe does not hold the imported original",
		edits: []edit{{stateGo, "\t\tOriginal: st.Original, Claimed:", "\t\tClaimed:"}},
		suite: "journal", pkg: "internal/journal", run1: "TestRebuildLosesNothing", want: "(-with, +without a checkpoint)",
	},
	{
		sample: true, name: "rebuild-without-keys",
		broken: "idempotency keys of earlier segments are lost with the checkpoint",
		edits:  []edit{{"internal/journal/append_rebuild.go", "\tnext.Keys = keysOf(past, st.Keys)\n", ""}},
		suite:  "journal", pkg: "internal/journal", run1: "TestRebuildKeepsKeys", want: "keys (-with, +without a checkpoint)",
	},
	{
		name: "rebuild-without-kept-heads", broken: "a branch that was left by a segment's first commit loses its head",
		edits: []edit{{"internal/journal/state/advance.go", "\t\t\tst.beginAt(first.Base)\n", "\t\t\tst.HeadOrd = first.Base.HeadOrd\n"}},
		suite: "journal", pkg: "internal/journal", run1: "TestRebuildLosesNothing", want: "(-with, +without a checkpoint)",
	},
	{
		name: "checkpoint-beyond-ignored", broken: "damage that ends before what the checkpoint holds is cut off as a torn tail",
		edits: []edit{{mendGo, "\tcase o.Summary.Seq > base.Summary.Seq:\n", "\tcase o == nil:\n"}},
		suite: "journal", pkg: "internal/journal", run1: "TestDamagedLaterCommitIsNotTorn",
		want: "the commit after an acknowledged one was damaged: <nil>",
	},
	{
		name: "last-line-by-its-end", broken: "resuming looks at the last 32 bytes of the last commit line only",
		edits: []edit{{recoverGo, "\treturn ours && err == nil\n", "\treturn ours || err == nil\n"}},
		suite: "journal", pkg: "internal/journal", run1: "TestDamagedLastCommitIsNotTorn",
		want: "the commit after an acknowledged one was damaged: <nil>",
	},
	{
		sample: true, name: "close-without-confirm", broken: "Close publishes bytes of the log that were never synced",
		edits: []edit{{journalGo, "\twrites := j.committed && !doubt", "\twrites := !doubt"}, {journalGo, "\tst, err := j.strategy.Harden(ctx, j.takeIn(j.Tip()))\n\tif err != nil || !st.Sure() { // a checkpoint must not cover bytes that may be lost\n\t\treturn err\n\t}\n", "\tst := j.takeIn(j.Tip())\n"}},
		suite: "disk_crash_test.go", pkg: "internal/lifecycle", run1: "TestFailedSyncThenOpenAndClose|TestKilledBeforeTheSyncThenOpenAndClose",
		want: "images fail, the first with",
	},
	{
		name: "refused-turn-drops-drafts", broken: "a turn that is refused drops what was appended before it",
		edits: []edit{{requestGo, "\tj.returnTaken()\n\tif err = j.unknown(err, r);", "\tj.returnTaken()\n\tj.mu.Lock()\n\tfor _, e := range r.taken {\n\t\te.stage = dropped\n\t}\n\tj.prune()\n\tj.mu.Unlock()\n\tif err = j.unknown(err, r);"}},
		suite: "turn_rules_test.go", pkg: "internal/lifecycle", run1: "TestRulesOfATurn",
		want: "context: got u1, want u1 u2",
	},
	{
		name: "close-does-not-wait", broken: "Close publishes while a request is in flight",
		edits: []edit{{lockGo, "\tif !l.held {\n", "\tif !l.held || ctx != nil {\n"}},
		suite: "close_test.go", pkg: "internal/lifecycle", run1: "TestCloseWaitsForTheRequestThatWasSent",
		want: "Close did not wait for the request that was sent",
	},
	{
		sample: true, name: "lock-is-overtaken", broken: "the lock of a handle goes to the call that came last",
		edits: []edit{{lockGo, "\tw := l.waiters[0]\n\tl.waiters = l.waiters[1:]\n", "\tw := l.waiters[len(l.waiters)-1]\n\tl.waiters = l.waiters[:len(l.waiters)-1]\n"}},
		suite: "crash", pkg: "internal/proof/crash", run1: "TestProofCrash",
		want: "of a group is commit",
	},
	{
		name: "idle-move-does-not-confirm", broken: "a move that has nothing to do names a commit that was read and not confirmed",
		edits: []edit{{commitGo, "\tif tip.Sure() || tip.Summary.Commit == \"\" {\n", "\tif tip != nil {\n"}},
		suite: "disk_crash_test.go", pkg: "internal/lifecycle", run1: "TestMoveToWhereTheHeadIsConfirmsIt",
		want: "power loss after the receipt of Switch",
	},
	{
		name: "append-after-a-loss", broken: "Append adds to the line of a handle that is behind",
		edits: []edit{{entryGo, "\tcase !sameHead(j.view, j.tip) && !j.cfg.KeepBoth:\n", "\tcase !sameHead(j.view, j.tip) && build == nil:\n"}},
		suite: "turn_rules_test.go", pkg: "internal/lifecycle", run1: "TestRulesOfATurn",
		want: "append on a handle that is behind: got <nil>",
	},
	{
		name: "keys-not-looked-up", broken: "an idempotency key is not looked up in the history",
		edits: []edit{{keysGo, "range st.KeyRefs(c.Key)", "range st.KeyRefs(\"\")"}},
		suite: "journal", pkg: "internal/journal", run1: "TestIdempotencyKey",
		want: "a2",
	},
	{
		name: "moves-forget-their-key", broken: "a move is made again under a key that is known",
		edits: []edit{{moveGo, "\tc := journal.Step{Key: k.key, Digest: k.digest,", "\tc := journal.Step{"}},
		suite: "move_keys_test.go", pkg: "internal/scenarios", run1: "TestMovesWithKeys",
		want: "the repeat",
	},
	{
		name: "lost-end-is-built-upon", broken: "commits that checkpoint_latest has and the log has not are not missed",
		edits: []edit{{recoverGo, "\t\tst.Missing = max(st.Missing, o.Summary.Seq)\n", ""}},
		suite: "damage_test.go", pkg: "internal/scenarios", run1: "TestLostEndOfTheLog",
		want: "a commit upon it",
	},
	{
		name: "create-looks-once", broken: "Create does not look for the tombstone again after its first segment",
		edits: []edit{{appendJournalGo, "\tdeleted := err == nil && o.Summary.Tombstone\n", "\tdeleted := err == nil && o.Summary.Tombstone && ctx == nil\n"}},
		suite: "disk_delete_test.go", pkg: "internal/lifecycle", run1: "TestCreateWhileAnotherCreatesAndDeletes",
		want: "commits acknowledged after Delete returned: got",
	},
	{
		name: "create-takes-any-segment", broken: "Create does not look whether the first segment of another creation is sealed",
		edits: []edit{{appendJournalGo, "err == nil && p.Prelude.Key == key {\n", "err == nil && p.Prelude.Key != 0 {\n"}},
		suite: "identity_test.go", pkg: "internal/importer", run1: "TestAnImportThatIsOvertaken",
		want: "it is not the sealed form of the plain segment",
	},
	{
		sample: true, name: "cut-compares-lengths", broken: "Cut removes other bytes of the same length",
		edits: []edit{{appendGo, "\tif !same {\n", "\tif !same && off < 0 {\n"}},
		suite: "backendtest", pkg: "backend/local", run1: "/^Append$",
		want: `cut "log": error <nil>, want precondition failed`,
	},
	{
		name: "close-always-writes", broken: "a handle that committed nothing writes when it is closed",
		edits: []edit{{journalGo, "\twrites := j.committed && !doubt", "\twrites := !doubt"}},
		suite: "close_test.go", pkg: "internal/lifecycle", run1: "TestCloseWithoutACommitWritesNothing",
		want: "writes: got ",
	},
	{
		name:   "moves-without-outline",
		broken: "a line that moves the head does not contain the outline that a listing shows",
		edits:  []edit{{composeGo, "\t\trec.Outline = step.Outline\n", "\t\trec.Outline = nil\n"}},
		suite:  "disk_info_test.go", pkg: "internal/lifecycle", run1: "TestInfoAfterMoves",
		want: "the handle reports",
	},
	{
		name: "keys-forgotten-early", broken: "64 idempotency keys are remembered instead of 1,024",
		edits: []edit{{"checkpoint/keys.go", "const MaxKeys = 1024", "const MaxKeys = 64"}},
		suite: "keys_test.go", pkg: "internal/lifecycle", run1: "TestKeysAreRemembered",
		want: "keys later: ",
	},
	{
		name: "view-follows-past-a-claim", broken: "a fenced handle commits again after it has read the claim",
		edits: []edit{{requestGo, "sameHead(j.view, j.tip) && !j.fences(j.tip, j.view.Summary.Seq) {", "sameHead(j.view, j.tip) {"}},
		suite: "journal", pkg: "internal/journal", run1: "TestClaimFencesOlderWriters",
		want: "got <nil>",
	},
	{
		name: "kept-line-moves", broken: "a kept turn's line moves the session",
		edits: []edit{{"internal/journal/state/advance.go", "\tst.SinceKey = keyframeDue\n", "\tst.SinceKey = keyframeDue\n\tst.HeadOrd, st.Summary.Entry, st.Summary.Branch = rec.HeadOrd, rec.Head, rec.Branch\n"}},
		suite: "journal", pkg: "internal/journal", run1: "TestTornKeepBoth",
		want: ": it stands at",
	},
	{
		name: "repair-installs-unconditionally", broken: "a repair replaces the checkpoint, whatever was committed since it looked",
		edits: []edit{{rewriteGo, "\tcond := backend.IfMatch(was)\n\tif !exists {", "\tcond := backend.Cond{}\n\tif !exists && ctx == nil {"}},
		suite: "repair", pkg: "internal/repair", run1: "TestRepairBesideALiveWriter/replace",
		want: "an acknowledged turn is lost beside the repair",
	},
	{
		sample: true, name: "repair-takes-a-later-version",
		broken: "a repair installs under a version that is newer than what it looked at",
		edits:  []edit{{"internal/check/survey.go", "\tif s.Raw, s.Version = p", "\tp, info, err = v.get(ctx, layout.CheckpointKey(v.id), backend.Range{})\n\tif s.Raw, s.Version = p"}},
		suite:  "repair", pkg: "internal/repair", run1: "TestRepairBesideALiveWriter/replace",
		want: "an acknowledged turn is lost beside the repair",
	},
	{
		name: "repair-without-fence", broken: "a repair on a disk does not close the active segment",
		edits: []edit{{repairGo, "\t\t\terr = r.closeWith(ctx, p.Seg, p.Key, int64(len(raw)))\n", "\t\t\terr = nil\n"}},
		suite: "repair", pkg: "internal/repair", run1: "TestRepairBesideALiveWriter/append",
		want: "commits to which the log does not lead",
	},
	{
		name: "repair-fence-counts-as-torn", broken: "a writer takes the fence of a repair for a torn tail, and cuts it off",
		edits: []edit{{rewriteGo, "Synced: size + 1, Seq:", "Synced: size, Seq:"}},
		suite: "repair", pkg: "internal/repair", run1: "TestRepairBesideALiveWriter/append",
		want: "commits to which the log does not lead",
	},
	{
		name: "repair-overlooks-a-roll", broken: "a repair fences a segment from which a writer has rolled over since it looked",
		edits: []edit{{repairGo, "\treturn &backend.Error{Op: \"repair\", Key: key, Outcome: backend.NotApplied, Err: errWentOn}\n", "\t_ = errWentOn\n\treturn nil\n"}},
		suite: "repair", pkg: "internal/repair", run1: "TestRepairBesideALiveWriter/append",
		want: "commits to which the log does not lead",
	},
	{
		name: "torn-copies-share-a-name", broken: "the copy of torn bytes in torn/ is written over that of an earlier recovery",
		edits: []edit{
			{mendGo, "\taside := layout.TornKey(", "\trnd = layout.FirstRandom\n\taside := layout.TornKey("},
			{mendGo, "\tif err := a.store.Create(ctx, aside, torn); err != nil {", "\tif _, err := a.b.Put(ctx, aside, torn, backend.Cond{}); err != nil {"},
		},
		suite: "journal", pkg: "internal/journal", run1: "TestTornBytesOutliveACrashedRecovery",
		want: "torn bytes of the first writer are gone (I14)",
	},
	{
		name: "cut-before-the-copy", broken: "a torn tail is cut off before its copy in torn/ exists",
		edits: []edit{{mendGo, "\trnd, err := a.store.Random()\n", "\tif err := a.b.Cut(ctx, key, good, torn); err != nil && !errors.Is(err, backend.ErrPrecondition) {\n\t\treturn nil, err\n\t}\n\trnd, err := a.store.Random()\n"}},
		suite: "journal", pkg: "internal/journal", run1: "TestTornBytesOutliveACrashedRecovery",
		want: "torn bytes of the first writer are gone (I14)",
	},
	{
		name: "found-sealed-is-not-put-again", broken: "a sealed segment that was found beside the plain one is built upon as it is",
		edits: []edit{{"internal/journal/append_upkeep.go", "\tif err := a.store.Harden(ctx, key, p, info.Version); err != nil {\n", "\tif info.Key == \"\" {\n"}},
		suite: "journal", pkg: "internal/journal", run1: "TestSealedFormThatWasFoundIsMadeDurable",
		want: "a sealed form that was found was not durable",
	},
	{
		name: "lock-of-an-old-file", broken: "a call that waited for a lock whose file was replaced holds the lock of the old file",
		edits: []edit{{"backend/local/lock.go", "\treturn err == nil && st.ID == l.id, nil\n", "\treturn err == nil || st.ID == l.id, nil\n"}},
		suite: "local", pkg: "backend/local", run1: "TestReplacedLockFile",
		want: "the lock file was replaced by one that is locked, and a waiting append ended with <nil>",
	},
	{
		name: "lock-without-a-name", broken: "a call holds the lock of a file that was removed while it waited",
		edits: []edit{{"backend/local/lock.go", "\treturn err == nil && st.ID == l.id, nil\n", "\treturn err != nil || st.ID == l.id, nil\n"}},
		suite: "local", pkg: "backend/local", run1: "TestReplacedLockFile",
		want: "the append holds a lock that has no name",
	},
	{
		sample: true, name: "gc-takes-what-it-cannot-read",
		broken: "an orphan on a disk that cannot be read counts as empty, and is collected",
		edits:  []edit{{gcGo, "\tif err == nil && got.Commits == 0 && got.End == len(raw) {", "\tif got.Commits == 0 {"}},
		suite:  "gc", pkg: "internal/gc", run1: "TestOrphanThatCannotBeReadStays",
		want: "an orphan that cannot be read: 0 objects of the name",
	},
	{
		name:   "gc-takes-what-it-was-not-given",
		broken: "an orphan on a disk that the store does not return is collected",
		edits:  []edit{{gcGo, "\tcase err != nil:\n\t\treturn true, fmt.Errorf(\"collect session %s: %w\", c.id, err)\n\t}\n\tif !cand", "\tcase err != nil:\n\t\treturn false, nil\n\t}\n\tif !cand"}},
		suite:  "gc", pkg: "internal/gc", run1: "TestOrphanThatCannotBeReadStays",
		want: "an orphan that the store did not give is gone",
	},
	{
		name: "repair-builds-on-what-it-finds", broken: "a repair takes over a sealed segment beside the plain one as it is, and removes the plain one",
		edits: []edit{{"internal/repair/remake.go", "\tif err == nil {\n\t\t_, err = r.cfg.Backend.Put(ctx, key, obj, backend.IfMatch(info.Version))\n\t}\n\treturn ref, err", "\t_ = info\n\treturn ref, err"}},
		suite: "repair", pkg: "internal/repair", run1: "TestRepairHardensWhatItFindsSealed",
		want: "a sealed form that was found was not durable",
	},
	{
		name: "repair-without-epoch-gap", broken: "a repair that cannot read the head takes the epoch after the newest segment's",
		edits: []edit{{repairGo, "\t\tr.epoch += epochGap ", "\t\tr.epoch += 0 "}},
		suite: "repair", pkg: "internal/repair", run1: "TestRepairWithoutAHeadRaisesTheEpoch",
		want: "with the repair (I8)",
	},
	{
		name: "rollback-as-a-patch", broken: "a rollback carries its document as a patch against the line that it leaves",
		edits: []edit{{moveGo, "Keyframe: mv.reason == \"rollback\",", "Keyframe: mv.reason == \"\","}},
		suite: "travel_test.go", pkg: "internal/scenarios", run1: "TestRollbackStandsAlone",
		want: "the state was lost, and no repair brought it back",
	},
	{
		name: "repair-prefers-the-damaged-line", broken: "a repair takes a damaged line that still parses before the intact copy in a checkpoint or a snapshot",
		edits: []edit{{"internal/repair/align.go", "(l == nil || !l.sure || h.ID == l.ID)", "l == nil"}},
		suite: "repair", pkg: "internal/repair", run1: "TestRepairPrefersWhatVerifies",
		want: "an intact copy was not taken",
	},
	{
		name: "rebuild-without-rules", broken: "a keyframe's rules of the working context are not taken over",
		edits: []edit{{"internal/journal/state/advance.go", "\tst.rules = RulesOf(b, st.rules)\n", ""}},
		suite: "journal", pkg: "internal/journal", run1: "TestRebuildLosesNothing", want: "(-with, +without a checkpoint)",
	},
	{
		name: "lost-checkpoint-is-no-session", broken: "in an object store, a session without its checkpoint counts as missing",
		edits: []edit{{replaceGo, "\t\treturn nil, r.lost(ctx, err)\n", "\t\treturn nil, err\n"}},
		suite: "list_test.go", pkg: "internal/scenarios", run1: "TestListWithoutCheckpoint", want: "a session without its checkpoint is not listed",
	},
	{
		name: "list-without-the-lost", broken: "a listing shows only the sessions that have a checkpoint",
		edits: []edit{{"internal/listing/names.go", "s.lost && end.name == \"\"", "s.lost"}},
		suite: "proof repair", pkg: "internal/proof/damage", run1: "TestProofRepair", want: "repair: not listed",
	},
	{
		name: "list-without-the-log", broken: "a listing shows sessions as their checkpoints have them, whatever was committed since",
		edits: []edit{{"internal/listing/logs.go", "return e.name != sum.LogName || e.bytes != sum.LogBytes\n", "return false\n"}},
		suite: "list_test.go", pkg: "internal/scenarios", run1: "TestListShowsTheLog", want: "newest first: got ",
	},
	{
		name: "repair-without-the-imported-file", broken: "a repair does not read the imported file again",
		edits: []edit{{"maintain.go", "\tif read == nil {\n", "\tif read != nil {\n"}},
		suite: "proof repair", pkg: "internal/proof/damage", run1: "TestProofRepair", want: "repair: lost entry",
	},
	{
		sample: true, name: "repair-destroys-what-it-moves", broken: "a repair moves nothing but names to torn/",
		edits: []edit{{repairGo, "Put(ctx, key, p, backend.IfAbsent())", "Put(ctx, key, nil, backend.IfAbsent())"}},
		suite: "proof repair", pkg: "internal/proof/damage", run1: "TestProofRepair", want: "repair: bytes are gone",
	},
	{
		name: "repair-takes-foreign-segments", broken: "a repair takes the lines of another session's segment",
		edits: []edit{{"internal/repair/remake.go", "\t\tif r.foreign(raw, p.Seg) {", "\t\tif false {"}},
		suite: "proof repair", pkg: "internal/repair", run1: "TestRepairOfMixedUpObjects", want: "sessions/s1",
	},
	{
		name:   "verify-overlooks-a-lost-state",
		broken: "verify is silent where only a state is lost at the end of a log",
		edits: []edit{{
			"internal/check/verify.go", "v.o.Summary.Seq > v.st.Summary.Seq {", "v.o.HeadOrd > v.st.HeadOrd {",
		}},
		suite: "verify_test.go", pkg: "internal/check", run1: "TestVerifyLostState", want: "0 pieces of damage",
	},
	{
		name: "repair-moves-the-head", broken: "what a repair records as lost becomes the head",
		edits: []edit{{
			"internal/repair/objects.go", "\tstep := &journal.Step{Reason: reason, Head: &head}\n", "\tstep := &journal.Step{Reason: reason}\n",
		}, {"internal/repair/objects.go", "Parent: head, Aside: true}", "Parent: head}"}},
		suite: "proof repair", pkg: "internal/proof/damage", run1: "TestProofRepair", want: "repair: head",
	},
	{
		name: "prune-drops-the-only-copy", broken: "prune does not look whether the log still leads to the state of a snapshot",
		edits: []edit{{"snapshots.go", "\t\tlist[i].Only = only[list[i].ID]\n", "\t\tlist[i].Only = only[list[i].ID] && ctx == nil\n"}},
		suite: "verify_test.go", pkg: "internal/scenarios", run1: "TestPruneKeepsTheOnlyCopy",
		want: "the only copy of a state stays: snapshots after prune",
	},
	{
		sample: true, name: "only-copies-of-documents-only",
		broken: "prune does not look whether the log still has the entries that a snapshot holds",
		edits:  []edit{{"snapshots.go", "\tif then.Window == nil {\n", "\tif then != nil {\n"}},
		suite:  "onlyways_test.go", pkg: "internal/scenarios", run1: "TestOnlyWays",
		want: "entries of each window are damaged, and",
	},
	{
		name: "without-segments-never-was", broken: "a session of which only the checkpoint is left counts as missing",
		edits: []edit{{recoverGo, "\tcase cerr == nil:\n\t\tkey := layout.SessionPrefix", "\tcase cerr == nil && o == nil:\n\t\tkey := layout.SessionPrefix"}},
		suite: "journal", pkg: "internal/journal", run1: "TestCheckpointWithoutSegments",
		want: "a session of which only the checkpoint is left",
	},
	{
		name: "annotation-moves-the-view", broken: "an annotation takes the handle to the newest state",
		edits: []edit{
			{requestGo, "moves := !s.Note ||", "moves := true ||"},
			{requestGo, "made := s.Base == nil && !s.Note ||", "made := true ||"},
			{requestGo, "len(j.list) == 0 && !s.Stay", "true"},
		},
		suite: "turn_rules_test.go", pkg: "internal/lifecycle", run1: "TestRulesOfATurn",
		want: "view: got",
	},
	{
		name: "keeping-moves-the-view", broken: "a turn that is kept takes the handle to the newest state",
		edits: []edit{{requestGo, "!s.Claim && !r.kept && !s.rolls()", "!s.Claim && !s.rolls()"}},
		suite: "turn_rules_test.go", pkg: "internal/lifecycle", run1: "TestRulesOfATurn",
		want: "view: got",
	},
	{
		name: "base-moves-the-view-under-a-buffer", broken: "a turn with a base moves the handle although it has drafts",
		edits: []edit{{requestGo, "len(s.Names) > 0 || len(j.list) == 0 && !s.Stay) {\n", "true) {\n"}},
		suite: "turn_rules_test.go", pkg: "internal/lifecycle", run1: "TestRulesOfATurn",
		want: "the draft was made on what was before: got <nil>",
	},
	{
		name: "keys-of-a-doubt-are-read", broken: "a retry of a doubt that was just ended fails with the read of its key",
		edits: []edit{{keysGo, "if c.Key != \"\" && last.rec != nil &&", "if c.Key != \"\" && j == nil && last.rec != nil &&"}},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-append", size: "ci",
		want: "was reported as not applied, and stands 1 times in the log (I2)",
	},
	{
		name: "ids-are-asked-for-once", broken: "after a conflict a turn is not asked again which of its ids are known",
		edits: []edit{{requestGo, "\tif r.known, err = j.knownEntries(ctx, tip, ", "\tif tip != j.State() {\n\t} else if r.known, err = j.knownEntries(ctx, tip, "}},
		suite: "known_ids_test.go", pkg: "internal/lifecycle", run1: "TestKnownIDsRetry",
		want: "behind: ",
	},
	{
		name: "damaged-ids-are-new", broken: "ids in a damaged run of the index count as new",
		edits: []edit{{
			"internal/journal/store/known.go", "\t\tif unreadable(err) {\n\t\t\trun, err =",
			"\t\tif unreadable(err) {\n\t\t\tif h.known.next = end; end > 0 {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\trun, err =",
		}},
		suite: "known_ids_test.go", pkg: "internal/lifecycle", run1: "TestKnownIDsDamage", want: "stored: got",
	},
	{
		name: "erase-forgets-too-early", broken: "an erasure forgets what it has to remove before it is removed",
		edits: []edit{{
			"internal/erase/clean.go", "\tfor _, key := range slices.Concat(old, gone, images) {",
			"\tif err := e.end(ctx); err != nil {\n\t\treturn err\n\t}\n" +
				"\tfor _, key := range slices.Concat(old, gone, images) {",
		}},
		suite: "power_test.go", pkg: "internal/proof/erase", run1: "TestProofPowerLoss", want: "zorbalonquist is in",
	},
	{
		name: "server-acknowledges-early", broken: "the HTTP service answers a commit before it is stored",
		edits: []edit{{
			commitsGo, "\tr, err := h.Commit(ctx, t)\n\tif err != nil {\n\t\tr, err = s.settled",
			"\tgo func() { _, _ = h.Commit(context.WithoutCancel(ctx), t) }()\n" +
				"\tr, err := coppice.Receipt{}, error(nil)\n\tif err != nil {\n\t\tr, err = s.settled",
		}},
		suite: "serve", pkg: "internal/proof/serve", run1: "TestProofServeKill", want: "stands there 0 times",
	},
	{
		sample: true, name: "server-drops-the-key", broken: "the HTTP service does not pass the Idempotency-Key on",
		edits: []edit{{
			commitsGo, "\tt.Key, t.Base, t.Writer = q.Key, q.made, q.Writer\n",
			"\tt.Base, t.Writer = q.made, q.Writer\n",
		}},
		suite: "serve", pkg: "internal/proof/serve", run1: "TestProofServeKill", want: ", and then by ",
	},
	{
		name: "feed-without-the-past", broken: "a follower that comes back gets only what the feed still has",
		edits: []edit{{eventsGo, "gap: after < f.from}", "gap: false}"}},
		suite: "serve", pkg: "internal/proof/serve", run1: "TestProofServeFollow", want: "the event after",
	},
	{
		name: "feed-of-each", broken: "each follower of a session has a watch of its own",
		edits: []edit{{eventsGo, "\tif f == nil {\n\t\tctx, cancel", "\tif f == nil || f != nil {\n\t\tctx, cancel"}},
		suite: "serve", pkg: "internal/proof/serve", run1: "TestProofServeMemory", want: "followers costs",
	},
	{
		name: "late-deletion", broken: "a deletion that runs late removes objects of the next session of the id",
		edits: []edit{{deleteGo, "(info.Key); epoch <= last {", "(info.Key); last > 0 {"}},
		suite: "again", pkg: "internal/journal", run1: "TestLateDeletionLeavesTheNextIncarnation",
		want: "but no segment does",
	},
	{
		name:   "tombstone-over-the-next",
		broken: "a deletion that runs late replaces the checkpoint of the next session of the id",
		edits:  []edit{{deleteGo, "case !o.Summary.Tombstone && o.Since > last:", "case o.Since > last && last == 0:"}},
		suite:  "again", pkg: "internal/journal", run1: "TestLateDeletionLeavesTheNextIncarnation",
		want: "session was deleted",
	},
	{
		name: "handle-of-any-incarnation", broken: "a handle of a deleted session goes on in the next session of its id",
		edits: []edit{{storeGo, "\tcase o.Since > *since:\n", "\tcase o.Since > *since && *since > 0:\n"}},
		suite: "again", pkg: "internal/journal", run1: "TestAgain$",
		want: "by a handle of the deleted session",
	},
}
