package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// objects gives each of ids to visit, in their order, with its kind and its bytes. What visit leaves unread is skipped.
func (r *Repo) objects(ctx context.Context, ids []string, visit func(id, kind string, size uint64, body io.Reader) error) error {
	if len(ids) == 0 {
		return nil
	}
	stdin := strings.NewReader(strings.Join(ids, "\n") + "\n")
	return r.stream(ctx, stdin, func(out io.Reader) error {
		from := bufio.NewReaderSize(out, 256<<10)
		for _, id := range ids {
			if err := oneObject(from, id, visit); err != nil {
				return err
			}
		}
		return nil
	}, "cat-file", "--batch")
}

func oneObject(from *bufio.Reader, id string, visit func(id, kind string, size uint64, body io.Reader) error) error {
	line, err := from.ReadString('\n')
	if err != nil {
		return fmt.Errorf("git cat-file ended before object %s: %w", id, err)
	}
	fields := strings.Fields(line)
	if len(fields) == 2 && fields[1] == "missing" {
		return errors.New(absent("object " + id))
	}
	if len(fields) != 3 || fields[0] != id {
		return fmt.Errorf("git cat-file says %q instead of object %s", line, id)
	}
	size, err := strconv.ParseUint(fields[2], 10, 62)
	if err != nil {
		return fmt.Errorf("size of object %s: %w", id, err)
	}
	body := &io.LimitedReader{R: from, N: int64(size)}
	if err := visit(id, fields[1], size, body); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	_, err = from.Discard(1) // the line break behind it
	return err
}

// absent says what a partial clone lacks, and what to do.
func absent(what string) string {
	return what + " is not in this clone; fetch all of the commit, for instance with git fetch --refetch --no-filter"
}

// A treeEntry is a file, link, folder or submodule of a commit.
type treeEntry struct {
	mode uint32
	kind string // blob, tree or commit
	id   string
	size uint64 // of a blob
	path string
}

// treeOf returns everything below a commit's root, in the order of paths.
func (r *Repo) treeOf(ctx context.Context, commit string) ([]treeEntry, error) {
	out, err := r.output(ctx, "ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit)
	if promised := new(Error); errors.As(err, &promised) && strings.Contains(promised.Text, "promisor") {
		return nil, fmt.Errorf("%s: %w", absent("a file of commit "+commit), err)
	}
	if err != nil {
		return nil, err
	}
	var all []treeEntry
	for line := range records(out) {
		head, path, ok := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 4 {
			return nil, fmt.Errorf("git ls-tree says %q", line)
		}
		mode, err := strconv.ParseUint(fields[0], 8, 32)
		if err != nil {
			return nil, fmt.Errorf("mode of %q: %w", path, err)
		}
		e := treeEntry{mode: uint32(mode), kind: fields[1], id: fields[2], path: path}
		if e.kind == "blob" {
			if e.size, err = strconv.ParseUint(fields[3], 10, 62); err != nil {
				return nil, errors.New(absent(fmt.Sprintf("object %s of %q", e.id, path)))
			}
		}
		all = append(all, e)
	}
	return all, nil
}
