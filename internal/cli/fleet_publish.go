package cli

import (
	"context"

	"github.com/spf13/cobra"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/obtain/login"
	"github.com/swdt-dev/swdt/internal/obtain/publish"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

type publishOptions struct {
	only       []string
	bases      []string
	pullSecret string
	plainHTTP  bool
}

func (a *app) fleetPublishCommand() *cobra.Command {
	o := &publishOptions{}
	cmd := canDryRun(&cobra.Command{
		Use:   "publish REGISTRY/REPOSITORY:TAG",
		Short: "Publish the node file's binaries as one artifact in a registry",
		Long: `Publishes the binaries of spec.kubernetes.provisioners as one artifact in an OCI
registry: each binary compressed, and beside it a patch from the build that the
tag had before. So a node with that build fetches some hundred kilobytes.
sourceURL: oci://REGISTRY/REPOSITORY:TAG pushes from it.

The login is that of docker login: config.json in $DOCKER_CONFIG or ~/.docker, and
the credential helpers that it names. Layers that the registry has are not sent
again, and the tag changes last. The same binaries and bases give the same digest.
No node is contacted.`,
		Example: examples(
			"fleet publish registry.example/team/node:dev", "with patches from what dev had",
			"fleet publish registry.example/team/node:v2 --base v1", "with patches from the set v1",
			"fleet publish registry.example/team/node:dev --only kubelet", "",
			"fleet publish registry.example/team/node:dev --dry-run", "sizes and digest, pushing nothing",
		),
		SuggestFor: []string{"upload", "push"},
		Args:       arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runFleetPublish(cmd.Context(), args[0], o)
		},
	})
	flags := cmd.Flags()
	flags.StringSliceVar(&o.only, "only", nil, "`name`s of the components to publish (default all)")
	flags.StringSliceVar(&o.bases, "base", nil,
		"`tag`s of the repository to make patches from (default: TAG itself, if it exists)")
	flags.StringVar(&o.pullSecret, "pull-secret", "",
		"`file` with the login, in the form of Docker's config.json")
	flags.BoolVar(&o.plainHTTP, "plain-http", false, "use no TLS; for localhost it is not needed")
	must(cmd.RegisterFlagCompletionFunc("only", listed(a.completeComponents)))
	must(cmd.MarkFlagFilename("pull-secret", "json"))
	return cmd
}

func (a *app) runFleetPublish(ctx context.Context, target string, o *publishOptions) error {
	options := publish.Options{Bases: o.bases, DryRun: a.global.dryRun}
	var err error
	if options.Target, err = distribution.ParseTarget(target); err != nil {
		return usagef("%v", err)
	}
	options.Target.PlainHTTP = options.Target.PlainHTTP || o.plainHTTP
	for _, base := range o.bases {
		if !distribution.IsTag(base) {
			return usagef("--base %q is no tag: write what is after the colon, such as v1", base)
		}
	}
	documents, err := a.documents()
	if err != nil {
		return err
	}
	if err := a.componentsExist(documents, o.only); err != nil {
		return err
	}
	if options.Credential, err = o.credential(); err != nil {
		return err
	}
	if options.Blobs, err = blobs.OpenDefault(); err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story := a.newStory()
	reporter := story.Node("")
	sources := source.NewSet(source.Options{Credential: options.Credential})
	components, err := push.Collect(ctx, documents, o.only, sources, reporter)
	var report publish.Report
	if err == nil {
		report, err = publish.Publish(ctx, components, options, reporter)
	}
	story.End()
	if err != nil {
		return explain(ctx, err)
	}
	return a.print(report, report.WriteText)
}

func (o *publishOptions) credential() (auth.CredentialFunc, error) {
	if o.pullSecret != "" {
		credential, err := distribution.PullSecret(o.pullSecret)
		if err != nil {
			return nil, usagef("--pull-secret: %v", err)
		}
		return credential, nil
	}
	return login.Docker()
}
