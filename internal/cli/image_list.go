package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/maruel/natural"
	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/inspect/imagecheck"
)

// imageListOptions are the flags of image list.
type imageListOptions struct {
	imageCheckOptions
	grep string
	tags int

	pattern *regexp.Regexp
}

func (a *app) imageListCommand() *cobra.Command {
	o := &imageListOptions{}
	cmd := &cobra.Command{
		Use:        "list REPOSITORY [flags]",
		Short:      "List the tags of a repository, with what each Windows node takes of them",
		SuggestFor: []string{"ls", "tags", "search"},
		Long: `Lists tags of a repository, those with the largest numbers first, and computes
for each tag and each node what image check computes. It reads the index of each
listed tag, so --tags bounds the requests, and --grep chooses the tags.

The nodes are those of image check. A tag that no node can run is in the list
too, and the exit code stays 0.`,
		Example: examples(
			"image list mcr.microsoft.com/windows/nanoserver --grep ltsc", "",
			"image list REPOSITORY --kubeconfig admin.conf", "",
		),
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runImageList(cmd.Context(), args[0], o) },
	}
	o.failOn = never
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.grep, "grep", "", "only tags that match this regular `expression` (RE2)")
	flags.IntVar(&o.tags, "tags", 20, "read this `number` of tags at most; 0 for all")
	return cmd
}

// complete checks the flags without contacting anything.
func (o *imageListOptions) complete(a *app, repository string) (err error) {
	if o.tags < 0 {
		return usagef("--tags %d: use a number that is not negative", o.tags)
	}
	if o.pattern, err = regexp.Compile(o.grep); err != nil {
		return usagef("--grep %q: %v", o.grep, err)
	}
	if last := repository[strings.LastIndex(repository, "/")+1:]; strings.ContainsAny(last, ":@") {
		return usagef("%s names one image: leave its tag out, or use `swdt image check`", repository)
	}
	return o.imageCheckOptions.complete(a)
}

func (a *app) runImageList(ctx context.Context, repository string, o *imageListOptions) error {
	if err := o.complete(a, repository); err != nil {
		return err
	}
	table, err := kubesettings.Load()
	if err != nil {
		return err
	}
	bounded, cancel := a.global.bounded(ctx)
	defer cancel()
	tags, more, err := o.registry.Tags(bounded, repository)
	if err != nil {
		return explain(bounded, err)
	}
	uses, left := o.choose(repository, tags)
	if len(uses) == 0 {
		a.warnOfTags(0, more, len(tags))
		return fmt.Errorf("none of the %d tags of %s matches %q", len(tags), repository, o.grep)
	}
	nodes, err := a.imageNodes(bounded, &o.imageCheckOptions, upgradecheck.NewReader(table), table, true)
	if err != nil {
		return err
	}
	report, err := imagecheck.List(bounded, o.registry, nodes, uses, time.Now())
	if err != nil {
		return explain(bounded, err)
	}
	report.Findings = []imagecheck.Finding{} // they are the business of image check
	printed := a.print(report, report.WriteText)
	a.warnOfTags(left, more, len(tags))
	if len(report.Unread) > 0 {
		return errors.Join(printed, fmt.Errorf("%d of %d tags could not be read", len(report.Unread), len(uses)))
	}
	return printed
}

// warnOfTags warns of tags that match and are not listed, and of tags that the registry has and has not sent.
func (a *app) warnOfTags(left int, more bool, read int) {
	story := a.newStory()
	defer story.End()
	if left > 0 {
		story.Node("").Warn("%d more tags are not listed: choose with --grep, or raise --tags", left)
	}
	if more {
		story.Node("").Warn("the registry has more tags than the %d that swdt could read: check an image of another tag with `swdt image check`", read)
	}
}

// choose returns the images of the tags to read, those with the largest numbers first, and how many more match.
func (o *imageListOptions) choose(repository string, tags []string) (uses []imagecheck.Use, left int) {
	tags = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return !o.pattern.MatchString(tag) })
	slices.SortFunc(tags, func(a, b string) int { return natural.Compare(b, a) })
	tags = slices.Compact(tags)
	if o.tags > 0 && len(tags) > o.tags {
		tags, left = tags[:o.tags], len(tags)-o.tags
	}
	for _, tag := range tags {
		uses = append(uses, imagecheck.Use{Image: repository + ":" + tag})
	}
	return uses, left
}
