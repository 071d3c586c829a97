package criclient

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Message returns a message as JSON in crictl's format. This is protobuf's JSON mapping. It
// includes scalars with their default value, empty lists and empty maps, but no unset messages.
func Message(m proto.Message) (json.RawMessage, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write the runtime's answer as JSON: %w", err)
	}
	var out bytes.Buffer // protobuf varies the spacing of its output; json.Compact makes the spacing stable
	if err := json.Compact(&out, text); err != nil {
		return nil, fmt.Errorf("write the runtime's answer as JSON: %w", err)
	}
	return out.Bytes(), nil
}

// StatusDocument returns the output of crictl info: the status and the runtime's
// further entries. An entry that is not valid JSON becomes a JSON string.
func StatusDocument(reply *runtimev1.StatusResponse) (json.RawMessage, error) {
	document := map[string]any{}
	for name, text := range reply.GetInfo() {
		if json.Valid([]byte(text)) {
			document[name] = json.RawMessage(text)
		} else {
			document[name] = text
		}
	}
	status, err := Message(reply.GetStatus())
	if err != nil {
		return nil, err
	}
	document["status"] = status
	if handlers := reply.GetRuntimeHandlers(); len(handlers) > 0 {
		var list []json.RawMessage
		for _, handler := range handlers {
			text, err := Message(handler)
			if err != nil {
				return nil, err
			}
			list = append(list, text)
		}
		document["runtimeHandlers"] = list
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("write the runtime's status as JSON: %w", err)
	}
	return text, nil
}
