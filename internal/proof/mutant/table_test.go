package mutant

// edit is one replacement in one file of the module.
type edit struct{ file, old, broken string }

// mutant is a protocol that is broken in one point, and the suite that must notice.
type mutant struct {
	name   string
	broken string // what it does wrong
	edits  []edit
	suite  string // the suite's name in docs/reliability.md
	pkg    string // its folder
	run1   string // which of its tests
	size   string // COPPICE_PROOF for it: "" is enough where a quick run finds it
	want   string // text of the finding by which it is caught
}

const (
	replaceGo = "internal/journal/replace.go"
	gcGo      = "internal/gc/gc.go"
	appendGo  = "backend/local/append.go"
	mendGo    = "internal/journal/append_mend.go"
	dirsGo    = "backend/local/vfs/dirs.go"
	sealGo    = "internal/journal/store/seal.go"
	composeGo = "internal/journal/compose.go"
	rebaseGo  = "internal/journal/mend.go"
	publishGo = "internal/journal/publish.go"
	stateGo   = "internal/journal/state/state.go"
)

var mutants = []mutant{
	{
		name: "unconditional-put", broken: "a commit's PUT carries no condition",
		edits: []edit{{replaceGo, "cond: backend.IfMatch(base.Version)}", "cond: backend.Cond{}}"}},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace",
		want: "stands 0 times in the log (I1)",
	},
	{
		name: "412-is-failed", broken: "a 412 after a lost answer counts as a failure, without a look",
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
		name: "unknown-is-failed", broken: "a commit that was not found out is reported as not applied, and the handle goes on",
		edits: []edit{{replaceGo, "\toutcome := backend.Unknown\n", "\toutcome := backend.NotApplied\n"}},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace", size: "ci",
		want: "was reported as not applied, and stands 1 times in the log (I2)",
	},
	{
		name: "rebase-does-not-look", broken: "a turn in doubt is committed again without looking for it",
		edits: []edit{{rebaseGo, "\tif now.Has(l.rec.ID) {\n", "\tif now == nil {\n"}},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace", size: "ci",
		want: "stands 2 times in the log (I1)",
	},
	{
		name: "repeated-bodies", broken: "commit ids are not fresh: equal turns give equal bodies and equal versions",
		edits: []edit{
			{composeGo, "\tid, err := transcript.NewID(now, c.cfg.Rand)\n", "\tnow = time.Unix(0, 0).UTC()\n\tid, err := transcript.NewID(now, zeros{})\n"},
			{composeGo, "// Composer makes commit lines", "type zeros struct{}\n\nfunc (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }\n\n// Composer makes commit lines"},
		},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace",
		want: "stands twice in the log",
	},
	{
		name: "dense-names", broken: "a segment is named by its first ordinal alone",
		edits: []edit{{sealGo, "Epoch: st.Summary.Epoch, Rnd: rnd}\n", "Rnd: rnd[:0] + layout.FirstRandom}\n"}},
		suite: "simulation", pkg: "internal/proof/sim", run1: "TestProofSimulation",
		want: "other bytes have this name",
	},
	{
		name: "gc-without-epochs", broken: "a collection removes all that the head does not reach",
		edits: []edit{{gcGo, "case c.keep[cand.key] || cand.seg.Epoch >= c.epoch:", "case c.keep[cand.key]:"}},
		suite: "simulation", pkg: "internal/proof/sim", run1: "TestProofSimulation",
		want: "the newest head leads to it, and it is not there",
	},
	{
		name: "epochs-stand-still", broken: "a new writer does not take a new epoch",
		edits: []edit{{composeGo, "\t\tepoch++\n", "\t\tepoch += 0\n"}},
		suite: "objectstore_test.go", pkg: ".", run1: "TestCollectBesideHosts|TestDeathBeforeTheCommit",
		want: "an orphan is left",
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
		suite: "faults", pkg: "internal/proof/faultfs", run1: "TestProofFaults",
		want: "was synced again after a failed sync",
	},
	{
		name: "unsynced-bytes-believed", broken: "what another writer left behind a failed sync is not written again before it is built upon",
		edits: []edit{{appendGo, "\tif err := rewrite(f, off, size); err != nil {\n", "\tif err := error(nil); err != nil {\n"}},
		suite: "faults", pkg: "internal/proof/faultfs", run1: "TestProofFaults", size: "ci",
		want: "they are there 0 and 0 times",
	},
	{
		name: "torn-tail-stays", broken: "bytes of a torn append are left in front of the next one",
		edits: []edit{{mendGo, "if err != nil || rest == 0 || now.Summary.Seq > base.Summary.Seq {", "if err != nil || rest >= 0 {"}},
		suite: "crash", pkg: "internal/proof/crash", run1: "TestProofCrash",
		want: "the next commit fails: commit s1: the head moved 4 times in a row",
	},
	{
		name: "cut-without-judgement", broken: "damaged bytes that somebody has built upon are cut off as a torn tail",
		edits: []edit{{mendGo, "if err := a.judge(ctx, base, torn); err != nil {", "if err := error(nil); err != nil {"}},
		suite: "journal", pkg: "internal/journal", run1: "TestTorn|TestPowerLoss|TestDamage",
		want: "want store.ErrCorrupt with the offset of the damaged commit",
	},
	{
		name: "unknown-does-not-stop", broken: "a handle goes on after a commit of which nobody knows what became",
		edits: []edit{{publishGo, "\tj.broken = &first\n", "\t_ = &first\n"}},
		suite: "faults", pkg: "internal/proof/faultfs", run1: "TestProofFaults",
		want: "I11: the handle lives after an outcome that is not known",
	},
	{
		name: "plain-removed-early", broken: "a plain segment goes before a checkpoint names its sealed form",
		edits: []edit{{"internal/journal/append_publish.go", "\tsaved := a.save(ctx, st)\n", "\tfor _, seg := range gone {\n\t\t_ = a.b.Delete(ctx, seg.PlainKey(a.cfg.Session))\n\t}\n\tsaved := a.save(ctx, st)\n"}},
		suite: "crash", pkg: "internal/proof/crash", run1: "TestProofCrash",
		want: "the next commit fails: commit s1: the head moved 4 times in a row",
	},
	{
		name: "failed-sync-is-not-applied", broken: "an append whose sync failed is reported as not applied",
		edits: []edit{{appendGo, "\t\treturn vfs.Stat{}, backend.Unknown, vfs.Step(\"sync\", err)\n", "\t\treturn vfs.Stat{}, backend.NotApplied, vfs.Step(\"sync\", err)\n"}},
		suite: "faults", pkg: "internal/proof/faultfs", run1: "TestProofFaults",
		want: "was reported as not applied and is in the history",
	},
	{
		name: "state-overwrites", broken: "a turn that moved only the document does not count as a conflict",
		edits: []edit{{publishGo, "&& a.Summary.Branch == b.Summary.Branch && bytes.Equal(a.DocJSON, b.DocJSON)\n", "&& (a.Summary.Branch == b.Summary.Branch || bytes.Equal(a.DocJSON, b.DocJSON))\n"}},
		suite: "linear", pkg: "internal/proof/linear", run1: "TestProofLinear/memory-replace",
		want: "which its writer never saw",
	},
	{
		name: "state-overwrites-simulated", broken: "the same, in the simulation",
		edits: []edit{{publishGo, "&& a.Summary.Branch == b.Summary.Branch && bytes.Equal(a.DocJSON, b.DocJSON)\n", "&& (a.Summary.Branch == b.Summary.Branch || bytes.Equal(a.DocJSON, b.DocJSON))\n"}},
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
		name: "rebuild-without-keys", broken: "idempotency keys of earlier segments are lost with the checkpoint",
		edits: []edit{{"internal/journal/append_rebuild.go", "\tnext.Keys = keysOf(past, st.Keys)\n", ""}},
		suite: "journal", pkg: "internal/journal", run1: "TestRebuildKeepsKeys", want: "keys (-with, +without a checkpoint)",
	},
	{
		name: "rebuild-without-kept-heads", broken: "a branch that was left by a segment's first commit loses its head",
		edits: []edit{{"internal/journal/append_rebuild.go", "\t\t\tst.BeginAt(b)\n", "\t\t\tst.HeadOrd = b.HeadOrd\n"}},
		suite: "journal", pkg: "internal/journal", run1: "TestRebuildLosesNothing", want: "(-with, +without a checkpoint)",
	},
}
