package criclient_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/node/criclient"
)

// keeping is a runtime with two pods and two images that does not remove the stuck ones.
type keeping struct {
	runtimev1.UnimplementedRuntimeServiceServer
	runtimev1.UnimplementedImageServiceServer
	stuck []string
	gone  []string // pods that another program has removed since they were listed
	did   []string
}

func (k *keeping) do(what, id string) error {
	if slices.Contains(k.stuck, id) {
		return status.Errorf(codes.Unknown, "%s is in use", id)
	}
	k.did = append(k.did, what+" "+id)
	return nil
}

func (k *keeping) ListPodSandbox(context.Context, *runtimev1.ListPodSandboxRequest) (
	*runtimev1.ListPodSandboxResponse, error) {
	pod := func(id string) *runtimev1.PodSandbox {
		return &runtimev1.PodSandbox{Id: id, Metadata: &runtimev1.PodSandboxMetadata{Namespace: "default",
			Name: "name-of-" + id}}
	}
	return &runtimev1.ListPodSandboxResponse{Items: []*runtimev1.PodSandbox{pod("p1"), pod("p2")}}, nil
}

func (k *keeping) StopPodSandbox(_ context.Context, r *runtimev1.StopPodSandboxRequest) (
	*runtimev1.StopPodSandboxResponse, error) {
	if slices.Contains(k.gone, r.GetPodSandboxId()) { // containerd v1.7.12, pkg/cri/server/sandbox_stop.go
		return nil, status.Errorf(codes.NotFound, "an error occurred when try to find sandbox %q: not found", r.GetPodSandboxId())
	}
	return &runtimev1.StopPodSandboxResponse{}, k.do("stop", r.GetPodSandboxId())
}

func (k *keeping) RemovePodSandbox(_ context.Context, r *runtimev1.RemovePodSandboxRequest) (
	*runtimev1.RemovePodSandboxResponse, error) {
	return &runtimev1.RemovePodSandboxResponse{}, k.do("remove", r.GetPodSandboxId())
}

func (k *keeping) ListImages(context.Context, *runtimev1.ListImagesRequest) (*runtimev1.ListImagesResponse, error) {
	return &runtimev1.ListImagesResponse{Images: []*runtimev1.Image{{Id: "i1"}, {Id: "i2"}}}, nil
}

func (k *keeping) RemoveImage(_ context.Context, r *runtimev1.RemoveImageRequest) (
	*runtimev1.RemoveImageResponse, error) {
	return &runtimev1.RemoveImageResponse{}, k.do("remove", r.GetImage().GetImage())
}

func (k *keeping) serve(t *testing.T) *criclient.Client {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimev1.RegisterRuntimeServiceServer(server, k)
	runtimev1.RegisterImageServiceServer(server, k)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	client, err := criclient.New(t.Context(), func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestClear(t *testing.T) {
	runtime := &keeping{}
	done, err := runtime.serve(t).Clear(t.Context())
	switch want := (criclient.Cleared{Pods: 2, Images: 2}); {
	case err != nil:
		t.Error(err)
	case done != want:
		t.Errorf("done is %v, want %v", done, want)
	}
	want := []string{"stop p1", "remove p1", "stop p2", "remove p2", "remove i1", "remove i2"}
	if !slices.Equal(runtime.did, want) {
		t.Errorf("did %q", runtime.did)
	}

	runtime = &keeping{stuck: []string{"p1", "i1"}}
	done, err = runtime.serve(t).Clear(t.Context())
	if want := (criclient.Cleared{Pods: 1, Images: 1}); done != want {
		t.Errorf("what can be removed was not: %+v", done)
	}
	switch {
	case err == nil:
		t.Error("no error, want one")
	case !strings.Contains(err.Error(), "default/name-of-p1"):
		t.Errorf("err.Error() lacks %q:\n%s", "default/name-of-p1", err.Error())
	case !strings.Contains(err.Error(), "the image i1"):
		t.Errorf("err.Error() lacks %q:\n%s", "the image i1", err.Error())
	}

	runtime = &keeping{gone: []string{"p1"}}
	done, err = runtime.serve(t).Clear(t.Context())
	if want := (criclient.Cleared{Pods: 2, Images: 2}); err != nil || done != want {
		t.Errorf("a pod that is gone already: %+v, %v", done, err)
	}
}
