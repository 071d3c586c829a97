package cri

import (
	"context"
	"fmt"
	"net"
	"slices"
)

// Questions are the calls that change nothing in a runtime.
func Questions() []string {
	const runtime, image = "/runtime.v1.RuntimeService/", "/runtime.v1.ImageService/"
	return []string{
		MethodVersion, MethodStatus,
		runtime + "ListPodSandbox", runtime + "PodSandboxStatus", runtime + "ListContainers", runtime + "ContainerStatus",
		runtime + "ListContainerStats", runtime + "ListPodSandboxStats", runtime + "RuntimeConfig",
		image + "ListImages", image + "ImageStatus", image + "ImageFsInfo",
	}
}

// Ask asks one of Questions, message and answer in protobuf's wire form.
func Ask(ctx context.Context, dial func(context.Context) (net.Conn, error), method string, message []byte) ([]byte, error) {
	if !slices.Contains(Questions(), method) {
		return nil, fmt.Errorf("%s is no question that changes nothing", method)
	}
	return ask(ctx, dial, method, message)
}
