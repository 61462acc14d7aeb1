package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Scores for the kernel's choice of a victim when memory runs out, from -1000, which is never
// chosen, to 1000. The agent can still be chosen, after everything that it has started.
const (
	agentScore    = -500
	workloadScore = 500
)

// Protect makes the kernel spare a process, by id, when memory runs out: it is for the agent
// and its launcher, which must outlive their workloads. A child inherits the score, so that
// Add raises that of a workload. Without the right to do so the process keeps the score that
// it has, and the error says so.
func Protect(pid int) error {
	score, err := scoreOf(pid)
	if err == nil && score > agentScore {
		err = setScore(pid, agentScore)
	}
	if err != nil {
		return fmt.Errorf("protect process %d from the out-of-memory killer: %w", pid, err)
	}
	return nil
}

// expose makes the kernel prefer a process when memory runs out. Its children inherit that.
func expose(pid int) error {
	score, err := scoreOf(pid)
	if err == nil && score < workloadScore {
		err = setScore(pid, workloadScore)
	}
	return err
}

// scoreOf reads the score of a process.
func scoreOf(pid int) (int, error) {
	text, err := os.ReadFile(scoreFile(pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// setScore writes the score of a process.
func setScore(pid, score int) error {
	return os.WriteFile(scoreFile(pid), []byte(strconv.Itoa(score)), 0)
}

// scoreFile is where the kernel keeps the score of a process.
func scoreFile(pid int) string {
	return filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj")
}
