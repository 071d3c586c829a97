package criproxy

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
)

func TestOnlyThreeMethodsAnswerWithAURL(t *testing.T) {
	for _, method := range []string{runtimev1.RuntimeService_Exec_FullMethodName,
		runtimev1.RuntimeService_Attach_FullMethodName, runtimev1.RuntimeService_PortForward_FullMethodName} {
		if !answersURL(method) {
			t.Errorf("%s is not recognized", method)
		}
	}
	for _, method := range []string{runtimev1.RuntimeService_ExecSync_FullMethodName, "",
		"/containerd.services.tasks.v1.Tasks/Exec"} {
		if answersURL(method) {
			t.Errorf("the answer to %s would be changed", method)
		}
	}
}

func TestErrorsOfAReplacementAreStatuses(t *testing.T) {
	answer := protowire.AppendString(protowire.AppendTag(nil, urlField, protowire.BytesType), "x")
	for want, cause := range map[codes.Code]error{
		codes.FailedPrecondition: &streaming.AddressError{URL: "x", Reason: "is not a URL"},
		codes.ResourceExhausted:  streaming.ErrTooMany,
		codes.Unavailable:        errors.New("no port"),
	} {
		got, err := replaceURL(answer, func(string) (string, error) { return "", cause })
		if status.Code(err) != want {
			t.Errorf("%v: %q, %v, want %v", cause, got, err, want)
		}
	}
	if got, err := replaceURL([]byte{0xff}, nil); status.Code(err) != codes.Internal {
		t.Errorf("an answer that is no message: %q, %v", got, err)
	}
}

// The URL that is replaced is the one that a client's decoder would read, whatever the runtime sends,
// and the client reads the new one alone.
func FuzzReplaceURL(f *testing.F) {
	url := func(text string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, urlField, protowire.BytesType), text)
	}
	f.Add(url("http://127.0.0.1:1/exec/t"))
	f.Add(append(url("a"), url("b")...))
	f.Add(append([]byte{0x12, 0x01, 'x'}, url("a")...))
	f.Add([]byte{0x08, 0x01})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, answer []byte) {
		var asked string
		replaced, err := replaceURL(answer, func(url string) (string, error) {
			asked = url
			return "http://new/", nil
		})
		if err != nil {
			return
		}
		var before, after runtimev1.ExecResponse
		if proto.Unmarshal(answer, &before) == nil && before.GetUrl() != asked {
			t.Fatalf("%q: a client reads %q, %q was replaced", answer, before.GetUrl(), asked)
		}
		if err := proto.Unmarshal(replaced, &after); err != nil || after.GetUrl() != "http://new/" {
			t.Fatalf("%q: the client reads %q, %v", replaced, after.GetUrl(), err)
		}
	})
}
