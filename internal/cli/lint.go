package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/lint"
	"github.com/swdt-dev/swdt/internal/cluster/lintlive"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

type lintOptions struct {
	files         []string
	failOn        string
	fix           bool
	fixNotes      bool
	cluster       clusterOptions
	namespace     string
	explain       string
	kubernetes    string
	templates     []string
	assumeWindows bool

	paths map[string]string // of --pod-template, by kind
}

func (a *app) lintCommand() *cobra.Command {
	o := &lintOptions{}
	cmd := canDryRun(&cobra.Command{
		Use:   "lint [FILE|FOLDER|-…] [flags]",
		Short: "Find what manifests say that Windows nodes do not do",
		Long: `Reads manifests and checks the pods for Windows in them: it finds fields
that the API server rejects for Windows, fields that Windows ignores or reads in
another way, pods that are not placed on Windows nodes or cannot start there.
It changes nothing without --fix, and contacts nothing but a cluster that
--kubeconfig or --context names.

It reads YAML and JSON: files, folders, and stdin for the output of kustomize or
helm; without files, the objects of the cluster. With both, it holds the files
against the version, the nodes and the networks of the cluster. --explain reads
the status of pods and the events about them, and names why they do not run.

Pods are for Windows if spec.os.name, a nodeSelector, an affinity, a
RuntimeClass of the manifests, windowsOptions or the name of an image shows it.

A comment "# swdt-lint:ignore RULE: REASON" above a field ignores findings about
it and what is below it; the annotation swdt.dev/lint-ignore, with the same
text, those about its object. A document that is no YAML is a finding too. The
exit code is 5 if a finding is as severe as --fail-on or worse.

--fix changes the files where one change alone is right: it removes fields that
Windows rejects or ignores, and adds the selector of pods for Windows. All other
bytes of a file stay, so do comments. With --dry-run, it shows the changes. The
text of stdin goes to stdout. --fix-notes is for notes, too: it adds
spec.os.name and removes what the API server then rejects.`,
		Example: examples(
			"lint ./manifests", "a folder, as in CI",
			"lint -f web.yaml -o wide", "with the source of each fact",
			"lint ./manifests --fix --dry-run", "the changes, as a diff",
			"lint --kubeconfig admin.conf", "the objects of a cluster",
			"lint --explain deploy/web", "why its pods do not run",
			"lint - --assume-windows", "stdin, as from helm template",
			"lint ./manifests -o sarif > lint.sarif", "also github and junit",
		),
		Args: arguments(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return a.runLint(cmd.Context(), o)
		},
		ValidArgsFunction: completeFiles,
	})
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "`file or folder` to read, several times for several; - for stdin")
	flags.StringVar(&o.namespace, "namespace", "", "only objects of this `namespace`")
	flags.StringVar(&o.explain, "explain", "", "find why a `pod` of the cluster does not run, or those of KIND/NAME")
	flags.StringVar(&o.kubernetes, "kubernetes", "", "`version` of Kubernetes that the rules are for (default that of the cluster, or all supported ones)")
	flags.BoolVar(&o.fix, "fix", false, "change the files where one change alone is right")
	flags.BoolVar(&o.fixNotes, "fix-notes", false, "with --fix: change what notes are about, too")
	flags.BoolVar(&o.assumeWindows, "assume-windows", false, "pods are for Windows if the manifests do not show for which system they are")
	flags.StringSliceVar(&o.templates, "pod-template", nil, "`KIND=PATH` of another kind that holds a pod's template, such as Rollout=spec.template")
	flags.StringVar(&o.failOn, "fail-on", string(finding.Error),
		"end with 5 for a finding this severe: error, warning, info or never")
	must(cmd.MarkFlagFilename("filename"))
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failOns(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// complete checks the flags.
func (o *lintOptions) complete(a *app) error {
	live := o.cluster.named() || o.explain != ""
	if o.explain != "" && len(o.files) > 0 {
		return usagef("--explain reads a cluster: name no files")
	}
	if len(o.files) == 0 && !live {
		return usagef("name files or folders to read, - for stdin, or a cluster with --kubeconfig or --context")
	}
	if !slices.Contains(failOns(), o.failOn) {
		return usagef("--fail-on %s: use %s", o.failOn, strings.Join(failOns(), ", "))
	}
	if _, err := version.ParseGeneric(o.kubernetes); o.kubernetes != "" && err != nil {
		return usagef("--kubernetes %s: write a version such as 1.36", o.kubernetes)
	}
	switch {
	case o.namespace != "" && (!live || len(o.files) > 0):
		return usagef("--namespace chooses objects of a cluster: name it with --kubeconfig or --context, and no files")
	case o.fix && len(o.files) == 0:
		return usagef("--fix changes files: name them")
	case (a.global.dryRun || o.fixNotes) && !o.fix:
		return usagef("--dry-run and --fix-notes are about what --fix changes: add --fix")
	case o.fix && slices.Contains(o.files, config.Stdin) && len(o.files) > 1:
		return usagef("--fix writes the text of stdin to stdout: name no files beside -")
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

// lintCluster reads the objects of the cluster. If there are files, it reads those alone that the files are held against.
func (a *app) lintCluster(ctx context.Context, o *lintOptions, r *lint.Reader, options *lint.Options) error {
	if slices.Contains(lintFormats(), a.format()) {
		return usagef("-o %s names lines of files: use text, json or yaml for a cluster", a.format())
	}
	c, err := o.cluster.open()
	if err != nil {
		return err
	}
	bounded, cancel := a.global.bounded(ctx)
	defer cancel()
	if options.Kubernetes == "" {
		if options.Kubernetes, err = c.Version(bounded); err != nil {
			return unreachable(explain(bounded, err))
		}
	}
	switch {
	case o.explain != "":
		return o.explainPods(bounded, c, r)
	case len(o.files) > 0:
		err = lintlive.Around(bounded, c, r)
	default:
		err = lintlive.Read(bounded, c, r, o.namespace)
	}
	return unreachable(explain(bounded, err))
}

// explainPods reads what the cluster reports of a pod, or of a workload.
func (o *lintOptions) explainPods(ctx context.Context, c *cluster.Cluster, r *lint.Reader) error {
	subject, err := lintlive.ParseSubject(o.explain, cmp.Or(o.namespace, metav1.NamespaceDefault))
	if err != nil {
		return usagef("--explain %s: %v", o.explain, err)
	}
	err = lintlive.Explain(ctx, c, r, subject)
	if errors.As(err, new(*lintlive.NoSuchObjectError)) {
		return usagef("--explain %s: %v; --namespace names another one", o.explain, err)
	}
	return unreachable(explain(ctx, err))
}

// least returns the least severe findings that are fixed.
func (o *lintOptions) least() finding.Severity {
	if o.fixNotes {
		return finding.Info
	}
	return finding.Warning
}

// fixesStdin reports whether the text of stdin is fixed, and written to stdout.
func (o *lintOptions) fixesStdin(dryRun bool) bool {
	return o.fix && !dryRun && slices.Contains(o.files, config.Stdin)
}

func (a *app) runLint(ctx context.Context, o *lintOptions) error {
	if err := o.complete(a); err != nil {
		return err
	}
	if o.fixesStdin(a.global.dryRun) && !a.inText() {
		return usagef("--fix writes the text of stdin to stdout: leave -o out")
	}
	r := &lint.Reader{Paths: o.paths}
	if err := a.readTexts(r, o.files, ""); err != nil {
		return err
	}
	options := lint.Options{AssumeWindows: o.assumeWindows, Kubernetes: o.kubernetes}
	if o.cluster.named() || o.explain != "" {
		if err := a.lintCluster(ctx, o, r, &options); err != nil {
			return err
		}
	}
	var report lint.Report
	switch {
	case a.global.dryRun:
		report = r.FixDry(options, o.least())
	case o.fix:
		r.Fix(options, o.least())
		fallthrough
	default:
		report = r.Check(options)
	}
	if report.Texts == 0 && len(o.files) > 0 {
		return usagef("%s: there are no files .yaml, .yml or .json", strings.Join(o.files, ", "))
	}
	failed := a.writeFixed(o, r)
	if err := errors.Join(a.printLint(o, report), failed); err != nil {
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

// writeFixed writes the texts that were fixed to their files, that of stdin to stdout, or what was changed.
func (a *app) writeFixed(o *lintOptions, r *lint.Reader) error {
	var all error
	for _, t := range r.Texts() {
		var err error
		switch {
		case !o.fix:
		case a.global.dryRun && a.inText():
			_, err = a.page().Write(diff.Diff(t.File, t.Before, t.File, t.After))
		case a.global.dryRun:
		case o.fixesStdin(a.global.dryRun):
			_, err = a.streams.Out.Write(t.After)
		case t.Changed():
			if err = localfile.Edit(filepath.FromSlash(t.File), t.Before, t.After); err != nil {
				err = fmt.Errorf("change %s: %w", t.File, err)
			}
		}
		all = errors.Join(all, err)
	}
	return all
}

func (a *app) printLint(o *lintOptions, report lint.Report) error {
	if o.fixesStdin(a.global.dryRun) { // stdout has the text
		return report.WriteText(a.pageTo(a.streams.Err))
	}
	if slices.Contains(lintFormats(), a.format()) {
		return report.Write(a.streams.Out, a.format())
	}
	return a.print(report, report.WriteText)
}

// WriteLintRules writes the page of lint's rules.
func WriteLintRules(w io.Writer) error { return lint.WritePage(w) }

// lintFormats are the formats that only lint has.
func lintFormats() []string { return []string{lint.SARIF, lint.GitHub, lint.JUnit} }
