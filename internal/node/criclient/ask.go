package criclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Answer is a runtime's answer: the message, and how to print it as a table.
type Answer struct {
	JSON json.RawMessage
	Text func(io.Writer) error
}

// Question asks a runtime for one Answer.
type Question func(context.Context, *Client) (Answer, error)

// Version asks for the runtime's name and version.
func Version(ctx context.Context, c *Client) (Answer, error) {
	reply, err := c.Runtime.Version(ctx, &runtimev1.VersionRequest{})
	return answer(reply, err, "its version", func(w io.Writer) error { return versionTable(w, reply) })
}

// Status asks for the runtime's status.
func Status(ctx context.Context, c *Client) (Answer, error) {
	reply, err := c.Runtime.Status(ctx, &runtimev1.StatusRequest{Verbose: true})
	if err != nil {
		return Answer{}, failed(err, "its status")
	}
	text, err := StatusDocument(reply)
	return Answer{JSON: text, Text: func(w io.Writer) error { return statusTable(w, reply) }}, err
}

// Pods asks for all pod sandboxes.
func Pods(ctx context.Context, c *Client) (Answer, error) {
	reply, err := c.Runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	return answer(reply, err, "its pods", func(w io.Writer) error { return podTable(w, reply, time.Now()) })
}

// Containers asks for all containers, including those that have ended.
func Containers(ctx context.Context, c *Client) (Answer, error) {
	reply, err := c.Runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{})
	if err != nil {
		return Answer{}, failed(err, "its containers")
	}
	names, err := c.ImageNames(ctx)
	return answer(reply, err, "its images", func(w io.Writer) error {
		return containerTable(w, reply, names, time.Now())
	})
}

// ImageNames returns the names of a runtime's images. The keys are the images' IDs.
func (c *Client) ImageNames(ctx context.Context) (map[string]string, error) {
	reply, err := c.Images.ListImages(ctx, &runtimev1.ListImagesRequest{})
	names := map[string]string{}
	for _, image := range reply.GetImages() {
		names[image.GetId()] = imageName(image)
	}
	return names, err
}

// ImageOf returns the name of a container's image. The kubelet refers to the image by
// its ID; only newer runtimes also keep the name from the pod's specification.
func ImageOf(c *runtimev1.Container, names map[string]string) string {
	image := c.GetImage()
	return cmp.Or(image.GetUserSpecifiedImage(), names[image.GetImage()], image.GetImage())
}

// Stats asks for the containers' resource usage.
func Stats(ctx context.Context, c *Client) (Answer, error) {
	reply, err := c.Runtime.ListContainerStats(ctx, &runtimev1.ListContainerStatsRequest{})
	return answer(reply, err, "its containers' statistics", func(w io.Writer) error { return statsTable(w, reply) })
}

// Images asks for all images. For each image it judges whether a node can run the image. host is
// the Windows build of that node.
func Images(host string) Question {
	return func(ctx context.Context, c *Client) (Answer, error) {
		reply, err := c.Images.ListImages(ctx, &runtimev1.ListImagesRequest{})
		if err != nil {
			return Answer{}, failed(err, "its images")
		}
		var rows []imageRow
		for _, image := range reply.GetImages() {
			platform, err := c.Platform(ctx, image.GetId())
			if err != nil {
				return Answer{}, failed(err, "the image "+image.GetId())
			}
			rows = append(rows, imageRow{image, platform, platform.On(host)})
		}
		return answer(reply, nil, "", func(w io.Writer) error { return imageTable(w, rows, host) })
	}
}

// Platform is the platform that an image was built for, as recorded in the image.
type Platform struct {
	OS        string `json:"os"`
	OSVersion string `json:"os.version"`
}

// Platform returns the platform of an image. CRI has no field for the platform, but containerd
// returns the image's configuration in a verbose status. Without that configuration, Platform
// returns an empty Platform and no error.
func (c *Client) Platform(ctx context.Context, id string) (Platform, error) {
	reply, err := c.Images.ImageStatus(ctx,
		&runtimev1.ImageStatusRequest{Image: &runtimev1.ImageSpec{Image: id}, Verbose: true})
	if err != nil {
		return Platform{}, err
	}
	var info struct {
		ImageSpec Platform `json:"imageSpec"`
	}
	if err := json.Unmarshal([]byte(reply.GetInfo()["info"]), &info); err != nil {
		return Platform{}, nil
	}
	return info.ImageSpec, nil
}

// On returns the verdict on whether a node can run an image of this platform. host is the Windows
// build of that node.
func (p Platform) On(host string) imagefit.Verdict {
	if p.OS != "" && p.OS != "windows" {
		return imagefit.OtherOS
	}
	image, err := imagefit.ParseBuild(p.OSVersion)
	here, hostErr := imagefit.ParseBuild(host)
	if errors.Join(err, hostErr) != nil {
		return imagefit.Unknown
	}
	return imagefit.Judge(here, image)
}

func answer(reply proto.Message, err error, what string, text func(io.Writer) error) (Answer, error) {
	if err != nil {
		return Answer{}, failed(err, what)
	}
	message, err := Message(reply)
	return Answer{JSON: message, Text: text}, err
}

func failed(err error, what string) error {
	return fmt.Errorf("ask the container runtime for %s: %w", what, err)
}

// size returns a size as text, or "" if the runtime does not report the size.
func size(v *runtimev1.UInt64Value) string {
	if v == nil {
		return ""
	}
	return ui.Size(int64(v.GetValue()))
}
