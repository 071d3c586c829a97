// Package imagepull makes nodes pull images before pods need them. It looks at all nodes first, decides what each of them lacks
// and takes, and changes nothing until that is known.
//
//   - imagepull.go: a look at a node, and the pulls on it
//   - plan.go: the images that each node should pull
//   - login.go: logins for registries
//   - report.go: the report and its texts
package imagepull

import (
	"context"
	"errors"
	"fmt"
	"strings"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/imagecheck"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Look asks a node for its Windows, its containerd and its images. has are the names of the images that it has, of those in
// names: the name may stand for another image than in the registry.
func Look(ctx context.Context, n *node.Node, pipe string, names []string, r ui.Reporter) (is imagecheck.Node, has map[string]criclient.Pulled, err error) {
	is.Name = n.Name
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return is, nil, fmt.Errorf("ask the node for its Windows: %w", err)
	}
	is.Windows = facts.GetBuild()
	client, err := criclient.Open(ctx, n, pipe, criclient.Options{Reconnect: r, Limit: criclient.AnswerLimit})
	if err != nil {
		return is, nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	version, err := client.Runtime.Version(ctx, &runtimev1.VersionRequest{})
	if err != nil {
		return is, nil, fmt.Errorf("ask the runtime for its version: %w", err)
	}
	if version.GetRuntimeName() == "containerd" {
		is.Containerd = strings.TrimPrefix(version.GetRuntimeVersion(), "v")
	}
	listed, err := client.Images.ListImages(ctx, &runtimev1.ListImagesRequest{})
	if err != nil {
		return is, nil, fmt.Errorf("list the node's images: %w", err)
	}
	for _, image := range listed.GetImages() {
		is.Images = append(is.Images, image.GetRepoDigests()...)
	}
	has = map[string]criclient.Pulled{}
	for _, name := range names {
		image, found, err := client.Image(ctx, name)
		if err != nil {
			return is, nil, err
		}
		if found {
			has[name] = image
		}
	}
	return is, has, nil
}

// Logins returns the login for the registry of an image; nil: none.
type Logins func(ctx context.Context, image string) (*runtimev1.AuthConfig, error)

// Pull makes a node pull the images of its plan, one after the other, also after a failure. If ctx ends, the images after that
// are reported as not begun. The results are those of all images, also with an error.
func Pull(ctx context.Context, n *node.Node, pipe string, plan []Step, logins Logins, r ui.Reporter) (results []ImageResult, err error) {
	results = Results(plan)
	client, err := criclient.Open(ctx, n, pipe, criclient.Options{Reconnect: r})
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for i, step := range plan {
		if !step.Pull {
			continue
		}
		if failed := pull(ctx, client, step, logins, r, &results[i]); failed != nil {
			results[i].Result, results[i].Message = Failed, failed.Error()
			err = errors.Join(err, failed)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return results, err
}

func pull(ctx context.Context, client *criclient.Client, step Step, logins Logins, r ui.Reporter, result *ImageResult) error {
	r.Step("pulling %s", step.Image)
	login, err := logins(ctx, step.Image)
	if err != nil {
		return err
	}
	transfer := r.Transfer("pull "+step.Image, step.NewBytes)
	left := step.NewBytes
	has, err := client.Pull(ctx, step.Image, criclient.PullOptions{Login: login, Progress: func(n int64) {
		if step.NewBytes > 0 { // the node may report more than the registry has named, or downloads of others
			n = min(n, left)
			left -= n
		}
		transfer.Add(n)
	}})
	if err == nil && step.NewBytes > 0 {
		transfer.Add(left) // the last second, and a node that reports no downloads
	}
	transfer.End()
	if err != nil {
		return fmt.Errorf("%w; the node needs a way to the registry and, if that asks for a login, --send-login", err)
	}
	result.Result, result.Digest = Pulled, has.Digest
	if has.Is(step.Digest) {
		result.Digest = step.Digest
	}
	if step.Digest != "" && has.Digest != "" && !has.Is(step.Digest) {
		result.Message = "the node's registry or mirror has another image than " + step.Digest
		r.Warn("%s: %s", step.Image, result.Message)
	}
	return nil
}
