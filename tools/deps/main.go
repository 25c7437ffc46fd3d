// Deps checks what the command is built from:
//
//	go -C tools run ./deps database          # gets the vulnerability database, and prints where it is
//	go -C tools run ./deps vulnerabilities   # known ones of its modules; those of the Go that builds it are printed
//	go -C tools run ./deps licences          # each module has one that is allowed here
//	go -C tools run ./deps notices           # the texts of these licences, for a release
//
// The vulnerabilities are those of the pinned version of the Go vulnerability database, which comes as a module: the
// check needs no other network and has the same result tomorrow.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	if len(os.Args) != 2 {
		fail(errors.New("want one of database, vulnerabilities, licences, notices"))
	}
	var err error
	switch os.Args[1] {
	case "database":
		var dir string
		if dir, err = getDatabase(); err == nil {
			fmt.Println(dir)
		}
	case "vulnerabilities":
		err = vulnerabilities()
	case "licences":
		err = licences(os.Stdout, io.Discard)
	case "notices":
		err = licences(io.Discard, os.Stdout)
	default:
		err = fmt.Errorf("unknown check %s", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "deps:", err)
	os.Exit(1)
}

// goJSON runs the go command in the folder of the module coppice, and decodes each value that it prints.
func goJSON[T any](args ...string) (values []T, err error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = "..", os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(out); ; {
		var v T
		if err = dec.Decode(&v); err != nil {
			break
		}
		values = append(values, v)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return values, errors.Join(err, cmd.Wait())
}
