package criclient

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func containersNamed(ids ...string) *runtimev1.ListContainersResponse {
	reply := &runtimev1.ListContainersResponse{}
	for _, id := range ids {
		reply.Containers = append(reply.Containers,
			&runtimev1.Container{Id: id, Metadata: &runtimev1.ContainerMetadata{Name: "c"}})
	}
	return reply
}

func numbered(count int) (ids []string) {
	for i := range count {
		ids = append(ids, fmt.Sprint(i))
	}
	return ids
}

func TestRepliesOfARuntimeAreBounded(t *testing.T) {
	labelled := func(key, value string) *runtimev1.ListContainersResponse {
		reply := containersNamed("a")
		reply.Containers[0].Labels = map[string]string{key: value}
		return reply
	}
	for name, c := range map[string]struct {
		reply   proto.Message
		refused string // the field; empty: the reply is accepted
	}{
		"nothing":             {&runtimev1.ListContainersResponse{}, ""},
		"many":                {containersNamed(numbered(mostListed)...), ""},
		"one ID twice":        {containersNamed("a", "b", "a"), "ListContainersResponse.containers"},
		"too many":            {containersNamed(numbered(mostListed + 1)...), "ListContainersResponse.containers"},
		"a long ID":           {containersNamed(strings.Repeat("a", longestName+1)), "Container.id"},
		"a label of an image": {labelled("description", strings.Repeat("x", 4<<10)), ""},
		"a pod's long name":   {labelled("io.kubernetes.pod.name", strings.Repeat("x", 4<<10)), "Container.labels"},
		"a long label":        {labelled("x", strings.Repeat("x", longestText+1)), "Container.labels"},
		"long information": {&runtimev1.StatusResponse{
			Info: map[string]string{"config": strings.Repeat("x", 1<<20)}}, ""},
		"endless information": {&runtimev1.StatusResponse{
			Info: map[string]string{"config": strings.Repeat("x", longestInfo+1)}}, "StatusResponse.info"},
		"one container's statistics twice": {&runtimev1.ListContainerStatsResponse{Stats: []*runtimev1.ContainerStats{
			{Attributes: &runtimev1.ContainerAttributes{Id: "a"}},
			{Attributes: &runtimev1.ContainerAttributes{Id: "a"}},
		}}, "ListContainerStatsResponse.stats"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := proto.Marshal(c.reply)
			if err != nil {
				t.Fatal(err)
			}
			got := c.reply.ProtoReflect().New().Interface()
			refused := decode(data, got)
			switch {
			case c.refused == "" && (refused != nil || !proto.Equal(got, c.reply)):
				t.Errorf("refused: %v", refused)
			case c.refused != "" && (refused == nil || refused.Field != c.refused):
				t.Errorf("got %v", refused)
			case refused != nil && len(refused.Error()) > 1000:
				t.Errorf("an error of %d bytes", len(refused.Error()))
			}
		})
	}
}

// Two bytes on the wire need hundreds in memory, so elements are counted before they are decoded.
func TestAReplyOfManyPartsIsNotDecoded(t *testing.T) {
	data := bytes.Repeat([]byte{0x0a, 0}, largestMessage/2)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	refused := decode(data, &runtimev1.ListContainerStatsResponse{})
	runtime.ReadMemStats(&after)
	if refused == nil {
		t.Fatal("decoded")
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("took %d bytes", took)
	}
	nested := append([]byte{0x0a, 0x80, 0x80, 0x40}, bytes.Repeat([]byte{0x42, 0}, 1<<19)...) // labels of one container
	if refused := decode(nested, &runtimev1.ListContainersResponse{}); refused == nil {
		t.Error("decoded what is nested")
	}
}

func FuzzRuntimeReply(f *testing.F) {
	for _, reply := range []proto.Message{containersNamed("a", "b"),
		&runtimev1.StatusResponse{Info: map[string]string{"a": "b"}}} {
		data, err := proto.Marshal(reply)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, to := range []proto.Message{
			&runtimev1.ListContainersResponse{}, &runtimev1.ListContainerStatsResponse{},
			&runtimev1.ContainerStatusResponse{}, &runtimev1.StatusResponse{},
		} {
			if refused := decode(data, to); refused != nil && (refused.Field == "" || errors.Unwrap(refused) != nil) {
				t.Errorf("%+v", refused)
			}
		}
	})
}
