package criproxy

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
)

// urlField is the number of the field url in the answers to Exec, Attach and PortForward.
const urlField protowire.Number = 1

// answersURL reports whether the runtime answers a method with a URL of its streaming server.
func answersURL(method string) bool {
	switch method {
	case "/runtime.v1.RuntimeService/Exec", "/runtime.v1.RuntimeService/Attach",
		"/runtime.v1.RuntimeService/PortForward", "/runtime.v1alpha2.RuntimeService/Exec",
		"/runtime.v1alpha2.RuntimeService/Attach", "/runtime.v1alpha2.RuntimeService/PortForward":
		return true
	}
	return false
}

// replaceURL returns an answer with the URL that replace returns for the runtime's. It keeps no other
// field: the three answers have none. Its errors are gRPC statuses.
func replaceURL(answer []byte, replace func(string) (string, error)) ([]byte, error) {
	url, err := urlOf(answer)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "read the runtime's streaming URL: %v", err)
	}
	url, err = replace(url)
	var address *streaming.AddressError
	switch {
	case errors.As(err, &address):
		return nil, status.Error(codes.FailedPrecondition, address.Error())
	case errors.Is(err, streaming.ErrTooMany):
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	case err != nil:
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return protowire.AppendString(protowire.AppendTag(nil, urlField, protowire.BytesType), url), nil
}

// urlOf returns the URL in an answer. If the field occurs more than once, the last one counts, as in
// every decoder.
func urlOf(answer []byte) (url string, err error) {
	for len(answer) > 0 {
		number, kind, n := protowire.ConsumeTag(answer)
		if n < 0 {
			return "", protowire.ParseError(n)
		}
		answer = answer[n:]
		value, n := answer, protowire.ConsumeFieldValue(number, kind, answer)
		if n < 0 {
			return "", protowire.ParseError(n)
		}
		answer = answer[n:]
		if number != urlField {
			continue
		}
		if kind != protowire.BytesType {
			return "", fmt.Errorf("the field has wire type %d", kind)
		}
		url, _ = protowire.ConsumeString(value)
	}
	return url, nil
}
