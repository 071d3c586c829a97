package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

// runtime gathers the facts of the container runtime, or the fact that no runtime answers.
func (g *gatherer) runtime(ctx context.Context) error {
	pipe := cmp.Or(g.Pipe, cri.DefaultPipe)
	r := Runtime{Pipe: pipe}
	client, err := criclient.Open(ctx, g.Node, pipe, criclient.Options{Reconnect: ui.Discard{},
		Limit: criclient.AnswerLimit})
	if err != nil {
		return g.noRuntime(r, err)
	}
	defer func() { _ = client.Close() }() // harmless if it fails, since all answers were received
	version, err := client.Runtime.Version(ctx, &runtimev1.VersionRequest{})
	if err != nil {
		return g.noRuntime(r, err)
	}
	r.Answers, r.Name, r.Version = true, version.GetRuntimeName(), version.GetRuntimeVersion()
	status, err := client.Runtime.Status(ctx, &runtimev1.StatusRequest{})
	if err != nil {
		r.Error = err.Error()
	}
	for _, c := range status.GetStatus().GetConditions() {
		r.Conditions = append(r.Conditions, Condition{Type: c.GetType(), Status: c.GetStatus(), Reason: c.GetReason(),
			Message: c.GetMessage()})
	}
	g.facts.Runtime = Known(r)
	g.pods(ctx, client)
	networks, err := hns.Pods(ctx, client.Runtime)
	g.facts.PodNetworks = factOf(networks, err)
	g.images(ctx, client)
	return ctx.Err()
}

// noRuntime sets the facts for a runtime that does not answer. The missing answer is itself a
// known fact, and the reason why other facts are unknown.
func (g *gatherer) noRuntime(r Runtime, err error) error {
	r.Error = err.Error()
	g.facts.Runtime = Known(r)
	const why = "the container runtime does not answer"
	g.facts.Sandboxes.Unknown, g.facts.InUse.Unknown, g.facts.Images.Unknown, g.facts.ImageStore.Unknown = why,
		why, why, why
	g.facts.PodNetworks.Unknown = why
	return nil
}

func (g *gatherer) pods(ctx context.Context, client *criclient.Client) {
	pods, err := client.Runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	sandboxes := []Sandbox{}
	for _, pod := range pods.GetItems() {
		sandboxes = append(sandboxes, Sandbox{
			ID: pod.GetId(), Namespace: pod.GetMetadata().GetNamespace(), Name: pod.GetMetadata().GetName(),
			UID:     pod.GetMetadata().GetUid(),
			Ready:   pod.GetState() == runtimev1.PodSandboxState_SANDBOX_READY,
			Created: time.Unix(0, pod.GetCreatedAt()).UTC(), Handler: pod.GetRuntimeHandler(),
		})
	}
	g.facts.Sandboxes = factOf(sandboxes, err)
	list, err := client.Runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{})
	containers := []Container{}
	for _, c := range list.GetContainers() {
		containers = append(containers, Container{
			Sandbox: c.GetPodSandboxId(), Name: c.GetMetadata().GetName(),
			Image: cmp.Or(c.GetImageRef(), c.GetImage().GetImage()),
			State: folded(strings.TrimPrefix(c.GetState().String(), "CONTAINER_")),
		})
	}
	g.facts.InUse = factOf(containers, err)
}

// images gathers the images and the platform of each image. The platform of each image needs a
// separate request, since CRI's list of images has no field for the platform.
func (g *gatherer) images(ctx context.Context, client *criclient.Client) {
	// All images together get the time limit of one answer, whatever their number.
	listed, cancel := context.WithTimeout(ctx, criclient.AnswerLimit)
	defer cancel()
	reply, err := client.Images.ListImages(listed, &runtimev1.ListImagesRequest{})
	images := []Image{}
	for _, image := range reply.GetImages() {
		platform, platformErr := client.Platform(listed, image.GetId())
		if platformErr != nil {
			err = fmt.Errorf("get the platform of image %s: %w", image.GetId(), platformErr)
			break
		}
		images = append(images, Image{
			ID: image.GetId(), Tags: image.GetRepoTags(), Bytes: image.GetSize(), OS: platform.OS,
			OSVersion: platform.OSVersion,
		})
	}
	g.facts.Images = factOf(images, err)
	store, err := client.Images.ImageFsInfo(listed, &runtimev1.ImageFsInfoRequest{})
	var used uint64
	for _, filesystem := range store.GetImageFilesystems() {
		used += filesystem.GetUsedBytes().GetValue()
	}
	g.facts.ImageStore = factOf(used, err)
}

// networks gathers the objects of the Host Network Service, without the policies of endpoints and
// without the JSON documents from which the objects were read. These documents are many times as
// long as the objects, and no rule reads them.
func (g *gatherer) networks(ctx context.Context) error {
	state, err := hns.Read(ctx, g.Node.Compute)
	for i := range state.Networks {
		state.Networks[i].Raw = nil
	}
	for i := range state.Endpoints {
		state.Endpoints[i].Raw, state.Endpoints[i].Policies = nil, nil
	}
	for i := range state.LoadBalancers {
		state.LoadBalancers[i].Raw = nil
	}
	for i := range state.Namespaces {
		state.Namespaces[i].Raw = nil
	}
	g.facts.HNS = factOf(state, err)
	return err
}

// orphans gathers the processes that should have an owner and have none (see owners.Table). It
// leaves out the processes' command lines, since command lines may contain secrets.
func (g *gatherer) orphans(ctx context.Context) error {
	table, err := owners.Gather(ctx, g.Node)
	if err == nil && len(table.Gaps) > 0 {
		g.facts.Orphans.Unknown = strings.Join(table.Gaps, "; ")
		return nil
	}
	orphans := []owners.Orphan{}
	for _, o := range table.Orphans {
		o.CommandLine = ""
		orphans = append(orphans, o)
	}
	g.facts.Orphans = factOf(orphans, err)
	return err
}
