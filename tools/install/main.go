// Install gets the modules of the newest commit as users do, by a proxy, into empty modules, without network:
//
//	go -C tools run ./install
//
// What they depend on is taken from the module cache. The example of each adapter runs there, and the command is built.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

const path = "github.com/coppice-go/coppice"

func main() {
	if err := install(".."); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}

// install packs, gets and runs the modules of a checkout.
func install(checkout string) (err error) {
	dir, err := os.MkdirTemp("", "coppice-install-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	checkout, err = filepath.Abs(checkout)
	if err != nil {
		return err
	}
	// The version of an untagged commit, as Go names it: another commit is another one in the module cache.
	of, err := output(checkout, nil, "git", "log", "-1", "--date=format-local:%Y%m%d%H%M%S", "--abbrev=12",
		"--format=v0.0.1-0.%cd-%h")
	if err != nil {
		return err
	}
	mods, err := filepath.Glob(filepath.Join(checkout, "adapters", "*", "go.mod"))
	if err != nil {
		return err
	}
	versions := []module.Version{{Path: path, Version: of}}
	for _, m := range mods {
		name := filepath.Base(filepath.Dir(m))
		versions = append(versions, module.Version{Path: path + "/adapters/" + name, Version: of})
	}
	proxy, files := filepath.Join(dir, "proxy"), filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		return err
	}
	if _, err := output(checkout, nil, "git", "archive", "--output="+files+".tar", "HEAD"); err != nil {
		return err
	}
	if _, err := output(files, nil, "tar", "-xf", files+".tar"); err != nil {
		return err
	}
	for _, v := range versions {
		if err := pack(proxy, files, v); err != nil {
			return err
		}
	}
	cache, err := output(checkout, nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, forget(cache, versions)) }()
	env := []string{
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download"), "GOSUMDB=off",
		"GOFLAGS=-mod=mod", "GOWORK=off",
	}
	for i, v := range versions {
		if err := use(filepath.Join(dir, fmt.Sprint("user", i)), files, v, env); err != nil {
			return err
		}
	}
	return nil
}

// pack writes a module as a proxy serves it: its files, without those of the modules below it.
func pack(proxy, files string, v module.Version) error {
	at, sub := filepath.Join(proxy, filepath.FromSlash(v.Path), "@v"), strings.TrimPrefix(v.Path, path)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := modzip.CreateFromDir(&packed, v, filepath.Join(files, sub)); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(files, sub, "go.mod"))
	if err != nil {
		return err
	}
	info := fmt.Appendf(nil, "{%q:%q}", "Version", v.Version)
	return errors.Join(
		os.WriteFile(filepath.Join(at, v.Version+".zip"), packed.Bytes(), 0o644),
		os.WriteFile(filepath.Join(at, v.Version+".mod"), mod, 0o644),
		os.WriteFile(filepath.Join(at, v.Version+".info"), info, 0o644),
		os.WriteFile(filepath.Join(at, "list"), []byte(v.Version+"\n"), 0o644))
}

// use gets a module into a new one, and runs its example there; of the command its version.
func use(dir, files string, v module.Version, env []string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	steps := [][]string{
		{"go", "mod", "init", "example.com/user"}, {"go", "get", path + "/cmd/coppice@" + v.Version},
		{"go", "build", path + "/cmd/coppice"}, {"./coppice", "--version"},
	}
	if v.Path != path {
		get := []string{"go", "get", v.Path + "@" + v.Version, path + "@" + v.Version}
		steps = append(steps[:1], get, []string{"go", "test", "."})
		const name = "example_test.go"
		example, err := os.ReadFile(filepath.Join(files, strings.TrimPrefix(v.Path, path), name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), example, 0o644); err != nil {
			return err
		}
	}
	for _, step := range steps {
		out, err := output(dir, env, step[0], step[1:]...)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n%s\n", strings.Join(step, " "), out)
	}
	return nil
}

// output runs a command, and returns what it prints.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), append(env, "TZ=UTC")...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// forget removes the modules from the module cache.
func forget(cache string, versions []module.Version) error {
	var errs []error
	for _, v := range versions {
		unpacked := filepath.Join(cache, filepath.FromSlash(v.Path)+"@"+v.Version)
		if _, err := os.Stat(unpacked); err == nil {
			errs = append(errs, filepath.WalkDir(unpacked, writable), os.RemoveAll(unpacked))
		}
		at := filepath.Join(cache, "cache", "download", filepath.FromSlash(v.Path), "@v")
		kept, err := filepath.Glob(filepath.Join(at, v.Version+".*"))
		errs = append(errs, err)
		for _, name := range kept {
			errs = append(errs, os.Remove(name))
		}
	}
	return errors.Join(errs...)
}

// writable lets the files of a folder be removed: the module cache is read-only.
func writable(name string, d fs.DirEntry, err error) error {
	if err == nil && d.IsDir() {
		err = os.Chmod(name, 0o755)
	}
	return err
}
