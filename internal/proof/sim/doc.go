// Package sim simulates the protocol of stores that only replace whole objects: real journals, and real
// stores of package coppice, on a network and a bucket that are made of one seed and a virtual clock.
//
// A seed decides everything: how many hosts there are, what each does, which faults the network has, how
// long every message takes, what every random byte is. Messages are lost, answered too late, sent twice,
// held back until everybody has left, and refused in all the ways that S3 knows; see faults_test.go.
// Hosts are killed, stand still for hours, and have clocks that are wrong. What they were told is then
// held against the history that a reader without faults finds: see ledger_test.go and final_test.go.
//
//	go test ./internal/proof/sim -run TestProofSimulation -seed 42 -v
//
// prints everything that happens in seed 42.
//
// Two runs of a seed are the same, event by event. A goroutine that asks the store sleeps until a moment
// that no other one wakes up at, so that the virtual clock, which moves only when all sleep, lets them on
// one by one. A message's fate is drawn from the seed, its sender, its operation, its key and how often
// that was asked before, so it does not matter in which order goroutines of one host ask.
package sim
