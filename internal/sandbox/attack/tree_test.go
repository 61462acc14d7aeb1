//go:build linux

package attack_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/attack"
)

// tree makes an input as an agent's cache would have it, and with the node of a device that no agent would put there.
func (d *decoys) tree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(d.host, "trees", rand.Text())
	err := errors.Join(os.MkdirAll(dir+"/"+attack.TreeFolder, 0o755), os.Chmod(dir, 0o755), os.Chmod(dir+"/"+attack.TreeFolder, 0o755))
	for _, name := range []string{attack.TreeFile, attack.TreeFolder + "/" + attack.TreeFile} {
		err = errors.Join(err, writeFile(dir+"/"+name, []byte(attack.TreeText), 0o644))
	}
	if os.Geteuid() == 0 {
		node := dir + "/" + attack.FileNull
		err = errors.Join(err, unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))), os.Chmod(node, 0o666))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// layers shows an attempt its input, if it has one.
func layers(target *attack.Target) []sandbox.Layer {
	if target.Tree == "" {
		return nil
	}
	return []sandbox.Layer{
		{Mount: filepath.Base(attack.ReadOnlyDir), Folder: target.Tree},
		{Mount: filepath.Base(attack.CopyDir), Folder: target.Tree, Writable: true},
	}
}

// treeChanged reports whether an input is not what tree made.
func treeChanged(t *testing.T, dir string) bool {
	t.Helper()
	found := ""
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || e.Name() == attack.FileNull {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		found += fmt.Sprintf("%s %v", name, info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			found += fmt.Sprintf(" %q", data)
			if err != nil {
				return err
			}
		}
		found += "\n"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf("%s -rw-r--r-- %q\n", attack.TreeFile, attack.TreeText)
	want := ". drwxr-xr-x\n" + file + attack.TreeFolder + " drwxr-xr-x\n" + attack.TreeFolder + "/" + file
	return found != want
}
