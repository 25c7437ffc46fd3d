package model

import "github.com/coppice-go/coppice/internal/proof"

// holds are the models of the protocol as it is.
func holds() []row {
	const quick, ci, nightly = proof.Quick, proof.CI, proof.Nightly
	type b = replaceBounds
	asIs, short := replaceRules{}, replaceRules{lineage: 2}
	return []row{
		replacing("replace, small, lossy network, crash, busy", quick, asIs, b{writers: 2, commits: 3, flight: 2, opens: 2, crashes: 1, tries: 1, busy: 1}, ""),
		replacing("replace, small, requests sent twice, rebase", quick, asIs, b{writers: 2, commits: 3, flight: 2, opens: 2, rebases: 1, hidden: 1}, ""),
		replacing("replace, small, segments, folds, compaction, GC", quick, asIs, b{writers: 2, commits: 4, names: 2, flight: 1, opens: 2, rolls: 1, gcs: 1, seals: true, lossless: true}, ""),
		replacing("replace, small, snapshots, rollback, images, deletion", quick, asIs, b{writers: 2, commits: 3, flight: 1, opens: 2, rolls: 1, snapshots: 1, drops: 1, blobs: 1, deletes: 1, lossless: true}, ""),
		replacing("replace, 2 writers, lossy network, crash, busy, rebase", nightly, asIs, b{writers: 2, commits: 5, flight: 2, opens: 3, crashes: 1, tries: 1, rebases: 1, busy: 1}, ""),
		replacing("replace, 2 writers, lossy network, requests sent twice", ci, asIs, b{writers: 2, commits: 4, flight: 3, opens: 3, crashes: 1, tries: 1, rebases: 2, hidden: 1}, ""),
		replacing("replace, 2 writers, a lineage of 2 commits", ci, short, b{writers: 2, commits: 5, flight: 2, opens: 3, crashes: 1, tries: 1, rebases: 1}, ""),
		replacing("replace, 2 writers, segments, folds, compaction, GC", ci, asIs, b{writers: 2, commits: 5, names: 3, flight: 2, opens: 3, rolls: 1, gcs: 1, seals: true, lossless: true}, ""),
		replacing("replace, 2 writers, the same on a lossy network", ci, asIs, b{writers: 2, commits: 4, names: 2, flight: 2, opens: 2, rebases: 1, rolls: 1, gcs: 1, tries: 1, seals: true}, ""),
		replacing("replace, 2 writers, snapshots, rollback, images, GC", ci, asIs, b{writers: 2, commits: 4, names: 2, flight: 2, opens: 2, rolls: 1, gcs: 1, snapshots: 1, drops: 1, blobs: 1, seals: true, lossless: true}, ""),
		replacing("replace, 2 writers, images, rollback, lossy network", ci, asIs, b{writers: 2, commits: 4, flight: 2, opens: 3, rolls: 1, blobs: 1, tries: 1}, ""),
		replacing("replace, 2 writers, deletion, images, GC, lossy network", ci, asIs, b{writers: 2, commits: 3, names: 1, flight: 2, opens: 3, gcs: 1, blobs: 1, deletes: 1, tries: 1, seals: true}, ""),
		replacing("replace, 3 writers, lossy network, rebase", nightly, asIs, b{writers: 3, commits: 4, flight: 3, opens: 4, crashes: 1, tries: 1, rebases: 1}, ""),
		replacing("replace, 3 writers, segments, GC", ci, asIs, b{writers: 3, commits: 5, names: 3, flight: 3, opens: 3, rebases: 1, gcs: 1, seals: true, lossless: true}, ""),
		tearing("log end, 2 processes", quick, tornModel{tokens: 8, attempts: 4, opens: 2, kills: 1, shorts: 1, syncs: 1, powers: 1}, ""),
		tearing("log end, 2 processes, larger", ci, tornModel{tokens: 12, attempts: 6, opens: 4, kills: 2, shorts: 1, syncs: 1, powers: 1}, ""),
		chaining("log, 2 processes, small", quick, chainModel{processes: 2, segments: 2, commits: 2, opens: 2, rolls: 1, cks: 1, gcs: 1, lostPower: 1}, ""),
		chaining("log, 2 processes, repair, damage, small", quick, chainModel{processes: 2, segments: 3, commits: 2, opens: 3, crashes: 1, rolls: 1, repairs: 1, flips: 1}, ""),
		chaining("log, 2 processes, roll, seal, checkpoint, GC", ci, chainModel{processes: 2, segments: 3, commits: 3, opens: 3, crashes: 1, rolls: 2, cks: 2, gcs: 1}, ""),
		chaining("log, 2 processes, the same and power loss", ci, chainModel{processes: 2, segments: 3, commits: 3, opens: 3, rolls: 2, cks: 1, gcs: 1, lostPower: 1}, ""),
		chaining("log, 2 processes, repair", ci, chainModel{processes: 2, segments: 4, commits: 4, opens: 3, rolls: 2, cks: 1, repairs: 1}, ""),
		chaining("log, 3 processes", ci, chainModel{processes: 3, segments: 3, commits: 3, opens: 3, rolls: 2, cks: 1, gcs: 1}, ""),

		replacing("replace, 2 writers, longer", nightly, asIs, b{writers: 2, commits: 6, flight: 3, opens: 4, crashes: 1, tries: 1, rebases: 2}, ""),
		replacing("replace, 2 writers, snapshots, rollback, images, GC, longer", nightly, asIs, b{writers: 2, commits: 4, names: 2, flight: 2, opens: 3, rolls: 1, gcs: 1, snapshots: 1, drops: 1, blobs: 1, seals: true, lossless: true}, ""),
		replacing("replace, 2 writers, deletion, longer", nightly, asIs, b{writers: 2, commits: 4, names: 1, flight: 2, opens: 3, gcs: 1, blobs: 1, deletes: 1, tries: 1, seals: true}, ""),
		replacing("replace, 3 writers, lossy network, rebase, longer", nightly, asIs, b{writers: 3, commits: 5, flight: 3, opens: 4, tries: 1, rebases: 1}, ""),
		replacing("replace, 3 writers, segments, folds, compaction, GC, longer", nightly, asIs, b{writers: 3, commits: 5, names: 3, flight: 3, opens: 4, rebases: 1, rolls: 1, gcs: 1, seals: true, lossless: true}, ""),
		replacing("replace, 3 writers, segments, GC, lossy network", nightly, asIs, b{writers: 3, commits: 4, names: 2, flight: 3, opens: 3, rebases: 1, gcs: 1, tries: 1, seals: true}, ""),
		tearing("log end, 2 processes, longer", nightly, tornModel{tokens: 13, attempts: 7, opens: 5, kills: 2, shorts: 1, syncs: 2, powers: 2}, ""),
		chaining("log, 2 processes, longer", nightly, chainModel{processes: 2, segments: 3, commits: 4, opens: 3, crashes: 1, rolls: 2, cks: 2, gcs: 1, lostPower: 1}, ""),
		chaining("log, 3 processes, longer", nightly, chainModel{processes: 3, segments: 3, commits: 4, opens: 4, rolls: 2, cks: 1, gcs: 1}, ""),
	}
}

// fails are the protocol without one of its rules, with the resulting violation. The bounds are just wide enough.
func fails() []row {
	const quick, ci = proof.Quick, proof.CI
	type (
		r = replaceRules
		b = replaceBounds
	)
	lossy := b{writers: 2, commits: 4, flight: 2, opens: 3, tries: 1}
	gc := b{writers: 2, commits: 4, names: 2, flight: 2, opens: 2, gcs: 1, seals: true, lossless: true}
	again := lossy
	again.rebases = 1
	twice := lossy
	twice.hidden = 1
	back := lossy
	back.rolls = 1
	sealing := lossy
	sealing.seals, sealing.names = true, 2
	images := lossy
	images.blobs = 1
	deleting := lossy
	deleting.deletes = 1
	rebasing := gc
	rebasing.rebases, rebasing.opens, rebasing.commits, rebasing.names = 1, 3, 5, 1
	snaps := gc
	snaps.commits, snaps.opens, snaps.names, snaps.snapshots, snaps.rolls = 4, 2, 1, 1, 1
	pictures := gc
	pictures.blobs, pictures.seals, pictures.names = 1, false, 0
	torn := func(change func(m *tornModel)) tornModel {
		m := tornModel{tokens: 10, attempts: 5, opens: 3, kills: 1, shorts: 1, syncs: 1, powers: 1}
		change(&m)
		return m
	}
	log := func(change func(m *chainModel)) chainModel {
		m := chainModel{processes: 2, segments: 3, commits: 3, opens: 2, rolls: 2, cks: 1, gcs: 1}
		change(&m)
		return m
	}
	return []row{
		replacing("unconditional PUT", quick, r{unconditional: true}, lossy, "I1"),
		replacing("412 means failed", quick, r{refusedFailed: true}, lossy, "I2"),
		replacing("412 that no read explained is certain", quick, r{refusedSure: true}, twice, "I2"),
		replacing("rollback without a fresh id", quick, r{sameBody: true}, back, "I1"),
		replacing("dense segment numbers", quick, r{dense: true}, sealing, "I4"),
		replacing("what the lineage of 2 does not show failed", quick, r{lineage: 2, blindSearch: true}, lossy, "I2"),
		replacing("a first commit does not look in the log", quick, r{lineage: 2, blindCreate: true}, lossy, "I2"),
		replacing("rebase looks once", quick, r{rebaseOnce: true}, again, "a turn"),
		replacing("rebase keeps its uploads", quick, r{keepUploads: true}, rebasing, "I3"),
		replacing("image PUT after the commit that names it", quick, r{blobLate: true}, images, "I3"),
		replacing("deletion removes checkpoint_latest", ci, r{deleteHead: true}, deleting, "I"),
		replacing("GC: head, then list; all that is not reachable", quick, r{gc: gcRootsThenList}, gc, "I3"),
		replacing("GC: list, then head; all that is not reachable", quick, r{gc: gcListThenRoots}, gc, "I3"),
		replacing("GC: in one moment; all that is not reachable", quick, r{gc: gcAtOnce}, gc, "I3"),
		replacing("GC: the head's own epoch too", quick, r{gc: gcEpochEqual}, gc, "I3"),
		replacing("GC: images that the head does not name", quick, r{gc: gcBlobs}, pictures, "I3"),
		replacing("snapshots name segments; GC reads them behind the head", ci, r{snapshotsName: true, gc: gcHeadThenSnaps}, snaps, "I9"),
		replacing("snapshots name segments; GC reads them before the head", ci, r{snapshotsName: true, gc: gcSnapsThenHead}, snaps, "I9"),

		tearing("append behind a torn tail", quick, torn(func(m *tornModel) { m.appendBehind = true }), "I1"),
		tearing("heal by declaration", quick, torn(func(m *tornModel) { m.declare = true }), "I1"),
		tearing("a commit line counts without its newline", quick, torn(func(m *tornModel) { m.bareCounts = true }), "I"),
		tearing("bytes of a failed sync are built upon", quick, torn(func(m *tornModel) { m.noResync = true }), "I1"),
		tearing("readers see a short write before it is cut back", ci, torn(func(m *tornModel) { m.dirtyReads = true }), "I1"),
		tearing("a short write is left, and reported failed", quick, torn(func(m *tornModel) { m.shortStays = true }), "I2"),
		tearing("a failed sync is called again", quick, torn(func(m *tornModel) { m.retrySync = true }), "I1"),
		tearing("acknowledged before the sync", quick, torn(func(m *tornModel) { m.earlyAck = true }), "I1"),

		chaining("append without a look at the length", quick, log(func(m *chainModel) { m.blindAppend = true }), "I1"),
		chaining("append creates a file that is gone", ci, log(func(m *chainModel) { m.appendCreates = true }), "I1"),
		chaining("the roll line before the segment", quick, log(func(m *chainModel) { m.rollFirst = true }), "I3"),
		chaining("another's sealed segment is believed durable", ci, log(func(m *chainModel) { m.noHarden, m.lostPower = true, 1 }), "I3"),
		chaining("the plain form goes once the sealed one is seen", quick, log(func(m *chainModel) { m.removeEarly, m.lostPower = true, 1 }), "I3"),
		chaining("GC of a log without epochs", quick, log(func(m *chainModel) { m.collectAll = true }), "I3"),
		chaining("GC of a log takes its roots from the checkpoint", ci, log(func(m *chainModel) { m.rootsOfCache = true }), "I3"),
		chaining("repair does not close the old segment", quick, log(func(m *chainModel) { m.repairUnfenced, m.repairs = true, 1 }), "I1"),
		chaining("a tail is judged without later segments", quick, log(func(m *chainModel) { m.judgeAlone, m.flips, m.crashes = true, 1, 1 }), "I1"),
	}
}
