package criclient_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

// ingest is a Status of containerd's api/services/content/v1/content.proto (module containerd/api 1.12.0): ref is 3, offset 4,
// total 5.
func ingest(ref string, offset, total uint64) []byte {
	var one []byte
	one = protowire.AppendTag(one, 1, protowire.BytesType) // started_at
	one = protowire.AppendBytes(one, nil)
	one = protowire.AppendTag(one, 3, protowire.BytesType)
	one = protowire.AppendString(one, ref)
	one = protowire.AppendTag(one, 4, protowire.VarintType)
	one = protowire.AppendVarint(one, offset)
	one = protowire.AppendTag(one, 5, protowire.VarintType)
	one = protowire.AppendVarint(one, total)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), one)
}

// content answers ListStatuses with one answer after the other, and nothing more after the last.
type content struct {
	answers   [][]byte
	asked     int
	namespace []string
}

func (c *content) handle(_ any, stream grpc.ServerStream) error {
	if method, _ := grpc.MethodFromServerStream(stream); method != "/containerd.services.content.v1.Content/ListStatuses" {
		return status.Error(codes.Unimplemented, method)
	}
	if asked, _ := metadata.FromIncomingContext(stream.Context()); asked != nil {
		c.namespace = asked.Get("containerd-namespace")
	}
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	c.asked++
	if c.asked > len(c.answers) {
		return stream.SendMsg([]byte{})
	}
	return stream.SendMsg(c.answers[c.asked-1])
}

// slowImages pulls for a time, and keeps the login that it got.
type slowImages struct {
	takes time.Duration
	login *runtimev1.AuthConfig
}

// handle answers both services of the pipe, as bytes.
func (s *slowImages) handle(c *content) grpc.StreamHandler {
	return func(service any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		var request []byte
		switch {
		case strings.HasSuffix(method, "/PullImage"):
			if err := stream.RecvMsg(&request); err != nil {
				return err
			}
			var pull runtimev1.PullImageRequest
			if err := proto.Unmarshal(request, &pull); err != nil {
				return err
			}
			s.login = pull.GetAuth()
			time.Sleep(s.takes)
			return send(stream, &runtimev1.PullImageResponse{ImageRef: "sha256:x"})
		case strings.HasSuffix(method, "/ImageStatus"):
			if err := stream.RecvMsg(&request); err != nil {
				return err
			}
			return send(stream, &runtimev1.ImageStatusResponse{Image: &runtimev1.Image{Id: "sha256:x",
				RepoDigests: []string{"mirror.test/app@" + digest("a"), "x.test/app-two@" + digest("b"), "x.test/app@" + digest("c"),
					"x.test/app@" + digest("d")}}})
		}
		return c.handle(service, stream)
	}
}

func send(stream grpc.ServerStream, message proto.Message) error {
	data, err := proto.Marshal(message)
	if err != nil {
		return err
	}
	return stream.SendMsg(data)
}

// pulled pulls an image that takes some seconds from a containerd with these answers about its downloads. It returns the calls
// of Progress.
func pulled(t *testing.T, login *runtimev1.AuthConfig, c *content) (progress []int64, images *slowImages) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		images = &slowImages{takes: 5500 * time.Millisecond}
		listener := bufconn.Listen(1 << 20)
		server := grpc.NewServer(grpc.ForceServerCodec(cri.RawCodec{}), grpc.UnknownServiceHandler(images.handle(c)))
		go func() { _ = server.Serve(listener) }() // it returns when the server stops
		defer server.Stop()
		client, err := criclient.New(t.Context(), func(ctx context.Context) (net.Conn, error) { return listener.DialContext(ctx) })
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		has, err := client.Pull(t.Context(), "x.test/app:1", criclient.PullOptions{Login: login,
			Progress: func(n int64) { progress = append(progress, n) }})
		if err != nil || has.Digest != digest("d") || !has.Is(digest("c")) || has.Is(digest("a")) || has.Is(digest("b")) || has.Is("") {
			t.Errorf("%+v, %v", has, err)
		}
	})
	return progress, images
}

func TestTheProgressOfAPull(t *testing.T) {
	const a, b = "layer-sha256:a", "layer-sha256:b"
	c := &content{answers: [][]byte{
		slices.Concat(ingest(a, 100, 1000), ingest("manifest-sha256:c", 7, 7)),
		slices.Concat(ingest(a, 600, 1000), ingest(b, 50, 200)),
		slices.Concat(ingest(a, 20, 1000), ingest(b, 60, 200)), // the first layer begins again
		ingest(b, 60, 200), // it has ended
		{},
	}}
	login := &runtimev1.AuthConfig{Username: "ci", Password: "s3cret"}
	progress, images := pulled(t, login, c)
	if want := []int64{100, 550, 10, 400, 140}; !slices.Equal(progress, want) {
		t.Errorf("progress %v, want %v", progress, want)
	}
	if images.login.GetPassword() != "s3cret" || !slices.Equal(c.namespace, []string{"k8s.io"}) {
		t.Errorf("login %v, namespace %v", images.login, c.namespace)
	}
}

// A node sends what it likes about its downloads: the pull goes on, and progress never counts backwards.
func TestHostileDownloads(t *testing.T) {
	many := []byte{}
	for i := range 2_000 {
		many = append(many, ingest(fmt.Sprintf("layer-sha256:%d", i), 1, 1)...)
	}
	for name, answer := range map[string][]byte{
		"no message":    {0xff, 0xff, 0xff},
		"a group":       protowire.AppendTag(nil, 1, protowire.StartGroupType),
		"a long name":   ingest("layer-sha256:"+strings.Repeat("a", 1<<20), 1, 1),
		"many":          many,
		"negative":      ingest("layer-sha256:a", math.MaxUint64, math.MaxUint64),
		"another field": protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 1),
	} {
		t.Run(name, func(t *testing.T) {
			progress, _ := pulled(t, nil, &content{answers: [][]byte{answer, answer}})
			var want []int64
			if name == "negative" {
				want = []int64{1 << 40} // the bound of a layer
			}
			if !slices.Equal(progress, want) {
				t.Errorf("progress %v, want %v", progress, want)
			}
		})
	}
}

// digest returns a digest of one repeated digit.
func digest(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }
