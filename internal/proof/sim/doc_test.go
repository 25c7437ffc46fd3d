// Package sim simulates the protocol of stores that only replace whole objects: real journals, and real stores of
// package coppice, on a network and a bucket controlled by one seed and a virtual clock.
//
// A seed determines everything: the number of hosts, their operations, the faults of the network, the latency of every
// message, all random bytes. Messages are lost, answered too late, sent twice, held back until all writers have ended,
// and refused in all the ways of S3; see faults_test.go. Hosts are killed, pause for hours, and have wrong clocks. The
// answers that they received are then compared with the history that a reader without faults finds: see ledger_test.go
// and final_test.go.
//
//	go test ./internal/proof/sim -run TestProofSimulation -seed 42 -v
//
// prints all events of seed 42.
//
// Two runs of a seed are equal, event by event. A goroutine that sends a request sleeps until a moment at which no
// other one wakes up, so that the virtual clock, which advances only when all sleep, wakes them one at a time. The fate
// of a message is derived from the seed, its sender, its operation, its key and the number of earlier requests for it,
// so it does not depend on the order of one host's goroutines.
package sim
