package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster/lint"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

type lintOptions struct {
	files         []string
	failOn        string
	templates     []string
	assumeWindows bool

	paths map[string]string // of --pod-template, by kind
}

func (a *app) lintCommand() *cobra.Command {
	o := &lintOptions{}
	cmd := &cobra.Command{
		Use:   "lint FILE|FOLDER|-… [flags]",
		Short: "Find what manifests say that Windows nodes do not do",
		Long: `Reads manifests and holds the pods for Windows in them against rules: fields
that the API server rejects for Windows, fields that Windows ignores or reads in
another way, pods that are not placed on Windows nodes or cannot start there.
It contacts nothing and changes nothing.

It reads YAML and JSON: files, folders, and stdin for the output of kustomize or
helm. Pods are for Windows if spec.os.name, a nodeSelector, an affinity, a
RuntimeClass of the manifests, windowsOptions or the name of an image shows it.

A comment "# swdt-lint:ignore RULE: REASON" above a field ignores findings about
it and what is below it; the annotation swdt.dev/lint-ignore, with the same
text, those about its object. A document that is no YAML is a finding too. The
exit code is 5 if a finding is as severe as --fail-on or worse.`,
		Example: examples(
			"lint ./manifests", "a folder, as in CI",
			"lint -f web.yaml -o wide", "with the source of each fact",
			"lint - --assume-windows", "stdin, as from helm template",
			"lint ./manifests -o sarif > lint.sarif", "also github and junit",
		),
		Args: arguments(cobra.ArbitraryArgs),
		RunE: func(_ *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return a.runLint(o)
		},
		ValidArgsFunction: completeFiles,
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "`file or folder` to read, several times for several; - for stdin")
	flags.BoolVar(&o.assumeWindows, "assume-windows", false, "pods are for Windows if the manifests do not show for which system they are")
	flags.StringSliceVar(&o.templates, "pod-template", nil, "`KIND=PATH` of another kind that holds a pod's template, such as Rollout=spec.template")
	flags.StringVar(&o.failOn, "fail-on", string(finding.Error),
		"end with 5 for a finding this severe: error, warning, info or never")
	must(cmd.MarkFlagFilename("filename"))
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failOns(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// complete checks the flags.
func (o *lintOptions) complete() error {
	if len(o.files) == 0 {
		return usagef("name files or folders to read, or - for stdin")
	}
	if !slices.Contains(failOns(), o.failOn) {
		return usagef("--fail-on %s: use %s", o.failOn, strings.Join(failOns(), ", "))
	}
	o.paths = map[string]string{}
	for _, one := range o.templates {
		kind, path, ok := strings.Cut(one, "=")
		if !ok || kind == "" || path == "" {
			return usagef("--pod-template %s: write KIND=PATH, such as Rollout=spec.template", one)
		}
		o.paths[kind] = path
	}
	return nil
}

func (a *app) runLint(o *lintOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	r := &lint.Reader{Paths: o.paths}
	if err := a.readTexts(r, o.files, ""); err != nil {
		return err
	}
	report := r.Check(lint.Options{AssumeWindows: o.assumeWindows})
	if report.Texts == 0 {
		return usagef("%s: there are no files .yaml, .yml or .json", strings.Join(o.files, ", "))
	}
	if err := a.printLint(report); err != nil {
		return err
	}
	switch {
	case o.failOn != never && report.Has(finding.Severity(o.failOn)):
		return &exitError{code: exitFinding}
	case report.Objects == 0 && len(report.Unread) > 0:
		return usagef("nothing was read")
	}
	return nil
}

func (a *app) printLint(report lint.Report) error {
	if slices.Contains(lintFormats(), a.format()) {
		return report.Write(a.streams.Out, a.format())
	}
	return a.print(report, report.WriteText)
}

// WriteLintRules writes the page of lint's rules.
func WriteLintRules(w io.Writer) error { return lint.WritePage(w) }

// lintFormats are the formats that only lint has.
func lintFormats() []string { return []string{lint.SARIF, lint.GitHub, lint.JUnit} }
