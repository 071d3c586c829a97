package cri

import (
	"context"
	"fmt"
	"net"
	"slices"
)

// Questions returns the full names of the methods that Ask allows. These methods change nothing in
// a runtime.
func Questions() []string {
	const runtime, image = "/runtime.v1.RuntimeService/", "/runtime.v1.ImageService/"
	return []string{
		MethodVersion, MethodStatus,
		runtime + "ListPodSandbox", runtime + "PodSandboxStatus", runtime + "ListContainers",
		runtime + "ContainerStatus",
		runtime + "ListContainerStats", runtime + "ListPodSandboxStats", runtime + "RuntimeConfig",
		image + "ListImages", image + "ImageStatus", image + "ImageFsInfo",
	}
}

// Ask calls one of the methods of Questions. The message and the reply are in protobuf's wire form.
func Ask(ctx context.Context, dial func(context.Context) (net.Conn, error), method string,
	message []byte) ([]byte, error) {
	if !slices.Contains(Questions(), method) {
		return nil, fmt.Errorf("%s may change the runtime and is not allowed here", method)
	}
	return ask(ctx, dial, method, message)
}
