package cli

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// ofCommands are flags of run that say something about the job of one command; a pipeline says it in its file.
var ofCommands = []string{
	"env", "timeout", "cpu", "memory", "disk", "label", "pool", "os", "arch", "network", "retry-infra", "output-files", "download", "source-mode", "secret",
}

// runPipeline runs the jobs of the repository's pipeline file: all, or those that are wanted and whatever they need.
func (a *app) runPipeline(cmd *cobra.Command, wanted []string, o jobOptions) error {
	for _, flag := range ofCommands {
		if cmd.Flags().Changed(flag) {
			return console.Usage("--%s is for a command behind --; of a pipeline, its file says that", flag)
		}
	}
	p, err := a.readPipeline("")
	if errors.Is(err, errNoPipeline) && len(wanted) > 0 {
		return console.Usage("%v\nTo run a command, write it behind --, as in: forgeyard run -- %s", err, console.Plain(strings.Join(wanted, " ")))
	}
	if err != nil {
		return err
	}
	file, err := a.parsePipeline(p)
	if err != nil {
		return err
	}
	if _, err := file.Expand(pipeline.Facts{}, wanted); err != nil {
		return console.Usage("%v", err)
	}
	if o.source.dir == "" {
		o.source.dir = filepath.Dir(p.Name) // a pipeline runs on what stands beside it, in a repository of git or not
	}
	return a.run(cmd.Context(), &api.RunRequest{
		Name: o.name, Pipeline: &api.PipelineRequest{File: p.Name, Text: string(p.Text), Jobs: wanted, Sandbox: o.sandbox},
	}, o)
}

// maxLine bounds a line of a log, in bytes. A longer one is shown in pieces.
const maxLine = 8 << 10
