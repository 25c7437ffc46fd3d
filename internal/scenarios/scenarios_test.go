package scenarios_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/entry"
)

// What the suites of other session stores hold them to, by number, and the test that holds it here.
//
//	 1-4  round trip, overwrite, missing keys, list order, keys  backend/backendtest: Read, Write, List, Errors/Keys
//	 5    no temporary file stays                                TestNothingIsLeftOver; backend/local TestSweep, TestFaultAtEveryCall
//	 6    errors keep their cause                                TestPlainFailure; backendtest Errors; backend/s3 TestAnswers
//	 7    a namespaced view is not prefixed twice                backend TestPrefixForms; TestPrefixes
//	 8    S3 prefixes, regions, pages                            backend/s3 TestAddress, TestBadAddresses, TestBackendBelowPrefix; backendtest List/Many
//	 9    a second process finds everything                      TestResume, TestSettings
//	10    ids that cannot be are refused                         TestImpossibleOptions
//	11    delete removes its own session only                    TestDelete, TestPrefixes, TestDeleteErases
//	12    a restore over something is told from a new start      TestOpenOrCreateTellsNewFromOld, TestTakenID
//	13    what is missing is fs.ErrNotExist                      TestOnlyCommitsWrite, TestAt
//	14    bytes that are no checkpoint: a typed error            TestForeignBytesForACheckpoint, TestCheckpointOfALaterFormat
//	15    images, documents and bytes survive                    TestImages, TestEveryByteSurvives
//	16    a conversation that the provider's server keeps        TestServerSideConversation
//	17    redaction                                              TestHooks, TestRedactionReachesNoObject
//	18    when is saved                                          TestCost, TestOnlyCommitsWrite
//	19    an unknown strategy is refused                         TestImpossibleOptions
//	20    snapshots by policy; a failed one keeps the commit     TestSnapshotPolicy, TestFailedSnapshotKeepsTheCommit
//	21    a snapshot on demand                                   TestSnapshots
//	22    ids within a millisecond; foreign files; pages         TestOneMillisecond, TestForeignSnapshots, TestList
//	23    back to then and to the latest                         TestAt, TestRollback
//	24    state moves without a message                          TestState
//	25    unchanged state; a failed write is tried again         TestUnchangedStateIsNotWrittenAgain, TestPlainFailure
//	26    no read that cannot succeed                            TestCost, TestOnlyCommitsWrite
//	27    the trimmed conversation and its count come back       TestTrimmedConversation, TestSetContext
//	28    summaries and pinned messages come back                TestCompaction, TestPinnedMessages
//	29    the reduced conversation is what is kept               TestReducedInMidTurn
//	30    offloaded results, lost ones                           TestOffloadedResult, TestLostImageBlocksNothing
//	31    one result for each call                               TestToolPairs, TestOpenCalls; transcript TestBuildContextCases
//	32    names do not collide                                   TestNamesDoNotCollide
//	33    a run is taken up in the middle                        TestResumeMidRun
//	34    a failed restore harms nothing and is tried again      TestFailedOpenHarmsNothing, TestDamageIsNotTakenForNew
//	35    the answer comes to a new process                      TestOpenCalls, TestForeignBytesForACheckpoint
//
// And what is ours: concurrent writers TestConflictKept and internal/proof/linear; power loss
// internal/proof/crash, internal/journal TestPowerLoss, TestKill9; a corrupt latest TestForeignBytesForACheckpoint and
// internal/journal TestLostCheckpoint; bounded bytes TestResumeDoesNotGrow; branch, fork, switch
// TestNavigation, TestFork, TestForkAfterCompaction, TestStatesOfBranchesDoNotLeak; retention TestSnapshots,
// TestNothingGoesByItself; listing TestList; write amplification TestBytesDoNotGrow, TestBytesPutDoNotGrow;
// orphans TestNothingIsLeftOver and internal/gc; torn tails internal/journal
// TestTornTailAtEveryByte; many resumes TestOpenAndCloseWriteNothing; history TestHistoryIsNeverChanged.

// plain returns an object with its compressed parts decompressed as well.
func plain(t testing.TB, key, object string) string {
	t.Helper()
	p, most := []byte(object), 64<<20
	if strings.HasSuffix(key, ".jsonl.zst") {
		raw, _, err := codec.DecodeSegment(p, int64(most))
		ok(t, err)
		return object + string(raw)
	}
	for _, kind := range []codec.Kind{codec.KindCheckpoint, codec.KindSnapshot, codec.KindIndex} {
		if _, body, err := codec.DecodeContainer(p, kind, most); err == nil {
			return object + string(body)
		}
	}
	return object
}

// holders returns the objects that contain a text, compressed or not.
func holders(t testing.TB, b backend.Backend, text string) []string {
	t.Helper()
	var keys []string
	for key, object := range objects(t, b) {
		if strings.Contains(plain(t, key, object), text) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// 11, and a user's right: after Delete no object contains anything of the conversation, the tombstone included.
func TestDeleteErases(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		o := &coppice.SessionOptions{Title: "private title", Cwd: "/private/folder"}
		s := create(t, store, "s", o)
		for range 140 {
			say(t, s, "private words", "again")
			commit(t, s, map[string]string{"private": "state"})
		}
		must(s.Branch(bg, "", &coppice.BranchOptions{Name: "private-branch"}))(t)
		must(s.Snapshot(bg, "private-tag"))(t)
		must(s.Append(bg, entry.User("private image", entry.Image("image/png", []byte(strings.Repeat("private bytes", 9000))))))(t)
		must(s.Commit(bg, coppice.Turn{Key: "private-key"}))(t)
		ok(t, s.Close())
		if len(holders(t, b, "private")) < 3 {
			t.Fatal("the test finds nothing to erase")
		}
		ok(t, store.Delete(bg, "s"))
		same(t, "holders", holders(t, b, "private"), []string(nil))
		left := objects(t, b)
		delete(left, "cas/proof") // belongs to the store, and contains nothing of a session
		same(t, "objects", slices.Collect(maps.Keys(left)), []string{"checkpoint_latest/s"})
	})
}

// 12: OpenOrCreate reports which of the two it did, and a new session never starts on an old one.
func TestOpenOrCreateTellsNewFromOld(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := must(store.OpenOrCreate(bg, "s", nil))(t)
		same(t, "new", s.Head().Seq, 0)
		say(t, s, "u1")
		commit(t, s, nil)
		again := must(store.OpenOrCreate(bg, "s", nil))(t)
		same(t, "old", again.Head().Seq, 1)
		same(t, "context", texts(t, again), "u1")
	})
}

// 22: with a stopped clock neither ids nor snapshots collide, and order is kept.
func TestOneMillisecond(t *testing.T) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fixedOptions()
			now := clock()()
			o.Now = func() time.Time { return now }
			s := create(t, newStore(t, open(t), o), "s", nil)
			entries, names := map[string]bool{}, map[string]bool{}
			for i := range 10 {
				for _, id := range say(t, s, "u", "a", "u") {
					entries[id] = true
				}
				commit(t, s, state{Turns: i})
				names[must(s.Snapshot(bg, ""))(t).ID] = true
				names[must(s.Snapshot(bg, ""))(t).ID] = true
			}
			same(t, "entries", len(entries), 30)
			list := collect(t, s.Snapshots(bg))
			if len(names) != len(list) {
				t.Errorf("%d names for %d snapshots", len(names), len(list))
			}
			for i := range len(list) - 1 {
				if list[i].ID <= list[i+1].ID || list[i].Seq < list[i+1].Seq {
					t.Errorf("%s stands before %s", list[i].ID, list[i+1].ID)
				}
			}
		})
	}
}

// 32: sessions with similar ids are separate, and deleting one leaves the others.
func TestNamesDoNotCollide(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		names := []string{"agent", "Agent", "AGENT", "agent-1", "agent.1", "agent_1", "agent-10", "_agent", "a", "main", "checkpoint_latest", "sessions"}
		for _, id := range names {
			s := create(t, store, id, nil)
			say(t, s, "u-"+id)
			commit(t, s, nil)
			ok(t, s.Close())
		}
		ok(t, store.Delete(bg, "agent"))
		for _, id := range names[1:] {
			same(t, id, texts(t, open(t, store, id)), "u-"+id)
		}
		same(t, "listed", len(collect(t, store.List(bg, coppice.ListOptions{}))), len(names)-1)
	})
}
