package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) configCommand() *cobra.Command {
	return group("config", "Write, check and convert node files",
		a.configInitCommand(), a.configValidateCommand(), a.configSchemaCommand(), a.configConvertCommand())
}

func (a *app) configInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Print a commented node file to start from",
		Example: examples("config init > swdt.yaml", ""),
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return a.printBytes(config.Starter())
		},
	}
}

func (a *app) configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the node file's JSON schema, for editors",
		Example: examples(
			"config schema > swdt.schema.json", "then: # yaml-language-server: $schema=swdt.schema.json",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return a.printBytes(config.Schema())
		},
	}
}

func (a *app) configValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE…]",
		Short: "Check node files: all problems at once, with file and line",
		Long: `Checks node files: those named, else those of --config or its defaults. It lists
each problem as file:line: field: problem; remedy. It contacts no node. The exit
code is 2 if there is a problem.

A sourceURL that names a missing file of your machine is a warning: the node
file is valid, and the exit code stays 0. A missing file that the build: of the
component makes is no problem. Downloads are not checked.`,
		Example: examples(
			"config validate", "",
			"config validate nodes/ extra.yaml", "",
		),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(_ *cobra.Command, files []string) error {
			if len(files) > 0 {
				a.global.config = files
			}
			return a.runConfigValidate()
		},
	}
}

// validated is the result of `config validate`.
type validated struct {
	Nodes    []validatedNode `json:"nodes"`    // of the files without a problem
	Problems []fileProblem   `json:"problems"` // printed on stderr too
	Warnings []string        `json:"warnings"`
}

// fileProblem is a config.Problem.
type fileProblem struct {
	File   string `json:"file"`  // "": the problem is not about a file
	Line   int    `json:"line"`  // 0: the problem is about the whole file
	Field  string `json:"field"` // "": the problem is not about a field
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

type validatedNode struct {
	frame
	File string `json:"file"`
	Line int    `json:"line"`
}

func (a *app) runConfigValidate() error {
	result := validated{Nodes: []validatedNode{}, Problems: []fileProblem{}, Warnings: []string{}}
	documents, err := a.documents()
	var wrong *config.Error
	if errors.As(err, &wrong) && !a.inText() {
		for _, p := range wrong.Problems {
			result.Problems = append(result.Problems, fileProblem(p))
		}
		return errors.Join(err, a.print(result, nil))
	}
	if err != nil {
		return err
	}
	for _, d := range documents {
		valid := newFrame(d.Node.Metadata.Name, "valid", nil)
		result.Nodes = append(result.Nodes, validatedNode{frame: valid, File: d.File, Line: d.Line})
		result.Warnings = append(append(append(result.Warnings, d.Warnings...), d.OtherMeanings...), missingSources(d)...)
	}
	for _, warning := range result.Warnings {
		fmt.Fprintln(a.streams.Err, "warning: "+warning)
	}
	return a.print(result, func(w *ui.Page) error {
		for _, n := range result.Nodes {
			if _, err := fmt.Fprintf(w, "%s:%d: node %s is valid\n", n.File, n.Line, n.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// missingSources warns about local binaries that do not exist and that no build creates.
func missingSources(d config.Document) (warnings []string) {
	for _, problem := range push.LookAtSources(d, nil) {
		if !problem.Builds {
			warnings = append(warnings, problem.String())
		}
	}
	return warnings
}

func (a *app) configConvertCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "convert [FILE]",
		Short: "Convert an older node file to today's format",
		Long: `Reads a node file of an older swdt from FILE or stdin and prints it in today's
format. It understands kind Config and kind Node of sig-windows-dev-tools, with
deploys or provisioners, and kind Cluster of its fork.

The result does what the older swdt did with the file. A field whose meaning has
changed is left out, and a comment at the top says so: enableRDP: false left
Remote Desktop as it was. Fields without a counterpart become comments too.`,
		Example: examples(
			"config convert old.yaml > swdt.yaml", "",
		),
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(_ *cobra.Command, args []string) error {
			file := config.Stdin
			if len(args) == 1 {
				file = args[0]
			}
			converted, err := config.Convert(file, a.streams.In)
			if err != nil {
				return err
			}
			return a.printBytes(converted)
		},
	}
}

func (a *app) printBytes(content []byte) error {
	if _, err := a.streams.Out.Write(content); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}
