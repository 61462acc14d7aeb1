package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// rowHeader is the first line of the rows that is no comment.
const rowHeader = "id\tpackage\ttest\ttier\tbroken_by"

// maxLine bounds one line of either file.
const maxLine = 64 << 10

// A row says that a test holds a requirement.
type row struct {
	id       string
	pkg      string // path below the module's root
	test     string
	tier     string
	brokenBy string
	line     int
	problem  string // what is wrong with the row itself, or empty
}

// readRows reads the rows. Rows that are wrong come with their problem, so that
// one typing error hides neither the other rows nor the tests.
func readRows(file string) ([]row, error) {
	if file == "" {
		return nil, nil
	}
	var rows []row
	seen := make(map[[3]string]int)
	header := false
	err := eachLine(file, func(number int, text string) {
		switch {
		case !header && text == rowHeader:
			header = true
			return
		case !header:
			rows = append(rows, row{line: number, problem: "the first line must be the header id, package, test, tier, broken_by, separated by tabs"})
			header = true
			return
		}
		r := parseRow(text, number)
		key := [3]string{r.id, r.pkg, r.test}
		if first, ok := seen[key]; ok && r.problem == "" {
			r.problem = fmt.Sprintf("the row stands at line %d already", first)
		}
		seen[key] = number
		rows = append(rows, r)
	})
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return rows, nil
}

func parseRow(text string, number int) row {
	fields := strings.Split(text, "\t")
	if len(fields) != 5 {
		return row{line: number, problem: fmt.Sprintf("%d columns, not 5: %q", len(fields), text)}
	}
	for i, field := range fields {
		fields[i] = strings.TrimSpace(field)
	}
	r := row{
		id: fields[0], pkg: fields[1], test: fields[2], tier: fields[3], brokenBy: fields[4],
		line: number,
	}
	switch {
	case r.id == "" || r.pkg == "" || r.test == "":
		r.problem = "id, package and test may not be empty"
	case r.tier != "pure" && r.tier != "real":
		r.problem = fmt.Sprintf("tier %q is neither pure nor real", r.tier)
	case r.brokenBy == "" || r.brokenBy == "mutant:":
		r.problem = "broken_by is empty: name the edit that was seen to make the test fail"
	}
	return r
}

// requirements are the ids that rows may name.
type requirements struct {
	known map[string]bool // nil when the file is not there
	file  string
}

// readRequirements reads the ids from the first column. The file stands beside
// the checkout and not everybody has it: then there is nothing to compare with.
func readRequirements(file string) (*requirements, error) {
	reqs := &requirements{file: file}
	if file == "" {
		return reqs, nil
	}
	known := make(map[string]bool)
	err := eachLine(file, func(_ int, text string) {
		id, _, _ := strings.Cut(text, "\t")
		if id = strings.TrimSpace(id); id != "" && id != "id" {
			known[id] = true
		}
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return reqs, nil
	case err != nil:
		return nil, fmt.Errorf("read requirements: %w", err)
	}
	reqs.known = known
	return reqs, nil
}

// eachLine calls f for every line that is neither empty nor a comment.
func eachLine(name string, f func(number int, text string)) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimRight(lines.Text(), "\r")
		if strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#") {
			continue
		}
		f(number, text)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
