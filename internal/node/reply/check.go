package reply

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// check checks every field of a message against its rule.
func check(message proto.Message) *Error {
	// ReadReply and PipeReply carry only bytes and are frequent, so they skip the general check
	// below. The two well-known types have checks that are not rules of fields.
	switch m := message.(type) {
	case *agentv1.ReadReply:
		// An endless series of empty replies would keep a reader busy for ever.
		if len(m.GetData())+len(m.GetPacked()) == 0 {
			return &Error{Field: "ReadReply.data", Problem: "is empty"}
		}
		return nil
	case *agentv1.PipeReply:
		return nil
	case *durationpb.Duration:
		return wellKnown(m.ProtoReflect().Descriptor(), checkDuration(m))
	case *timestamppb.Timestamp:
		return wellKnown(m.ProtoReflect().Descriptor(), checkTime(m))
	}
	var refused *Error
	message.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		refused = checkField(field, value)
		return refused == nil
	})
	if refused != nil {
		return refused
	}
	return checkRequired(message)
}

// required returns the fields whose empty value is not valid. Range does not visit
// empty fields, so it cannot check them.
func required(message proto.Message) []protoreflect.Name {
	switch message.(type) {
	case *agentv1.HashReply, *agentv1.PatchReply:
		return []protoreflect.Name{"sha256"}
	case *agentv1.FileInfo:
		return []protoreflect.Name{"path"}
	case *agentv1.Transaction:
		return []protoreflect.Name{"id"}
	case *agentv1.PastTransaction:
		return []protoreflect.Name{"id", "number"}
	case *agentv1.PastComponent:
		return []protoreflect.Name{"name", "destination"}
	case *agentv1.SwapOutcome:
		return []protoreflect.Name{"result"}
	}
	return nil
}

func checkRequired(message proto.Message) *Error {
	reflected := message.ProtoReflect()
	for _, name := range required(message) {
		if field := reflected.Descriptor().Fields().ByName(name); !reflected.Has(field) {
			return &Error{Field: fieldName(field), Problem: "is missing"}
		}
	}
	return nil
}

func checkField(field protoreflect.FieldDescriptor, value protoreflect.Value) *Error {
	if !field.IsList() {
		return checkValue(field, value)
	}
	elements := value.List()
	if most := ruleOf(field).most; elements.Len() > most {
		return &Error{Field: fieldName(field), Problem: fmt.Sprintf("has more than %d elements", most)}
	}
	for i := range elements.Len() {
		if refused := checkValue(field, elements.Get(i)); refused != nil {
			return refused
		}
	}
	return nil
}

func checkValue(field protoreflect.FieldDescriptor, value protoreflect.Value) *Error {
	if field.Kind() == protoreflect.MessageKind {
		refused := check(value.Message().Interface())
		if refused != nil && !strings.Contains(refused.Field, ".") {
			refused.Field = fieldName(field)
		}
		return refused
	}
	if field.Kind() == protoreflect.EnumKind && field.Enum().Values().ByNumber(value.Enum()) == nil {
		return &Error{Field: fieldName(field), Problem: fmt.Sprintf("is %d, not one of %s", value.Enum(),
			field.Enum().Name())}
	}
	if rule := ruleOf(field); rule.value != nil {
		if problem := rule.value(value); problem != "" {
			return &Error{Field: fieldName(field), Problem: problem}
		}
	}
	return nil
}

func wellKnown(descriptor protoreflect.MessageDescriptor, problem string) *Error {
	if problem == "" {
		return nil
	}
	return &Error{Field: string(descriptor.Name()), Problem: problem}
}

// longestTime is longer than any duration that a node can have measured.
const longestTime = 200 * 365 * 24 * time.Hour

func checkDuration(d *durationpb.Duration) string {
	if !d.IsValid() || d.AsDuration().Abs() > longestTime { // a duration is negative if a clock was set back
		return fmt.Sprintf("is %d s and %d ns, not a length of time", d.GetSeconds(), d.GetNanos())
	}
	return ""
}

// checkTime refuses times before 1601, the first year that Windows can express. A valid timestamp ends with the
// year 9999.
func checkTime(t *timestamppb.Timestamp) string {
	if !t.IsValid() || t.AsTime().Year() < 1601 {
		return fmt.Sprintf("is %d s and %d ns, not a time", t.GetSeconds(), t.GetNanos())
	}
	return ""
}

// related checks a reply against its request. It has checks for only some types of requests, and
// returns nil for all others.
func related(request, reply any) *Error {
	switch asked := request.(type) {
	case *agentv1.ListFilesRequest:
		return listed(asked, reply.(*agentv1.ListFilesReply))
	case *agentv1.InspectRequest:
		return answered("InspectReply.components", asked.GetComponents(), reply.(*agentv1.InspectReply).GetComponents())
	case *agentv1.GetFeaturesRequest:
		var wanted []*agentv1.Feature
		for _, name := range asked.GetNames() {
			wanted = append(wanted, &agentv1.Feature{Name: name})
		}
		return answered("FeaturesReply.features", wanted, reply.(*agentv1.FeaturesReply).GetFeatures())
	}
	return nil
}

// listed checks that the entries are in the requested folder, each once.
func listed(asked *agentv1.ListFilesRequest, reply *agentv1.ListFilesReply) *Error {
	const field = "ListFilesReply.entries"
	folder := strings.TrimRight(strings.ReplaceAll(asked.GetPath(), "/", `\`), `\`)
	seen := make(map[string]struct{}, len(reply.GetEntries()))
	for _, entry := range reply.GetEntries() {
		cut := strings.LastIndexByte(entry.GetPath(), '\\')
		if !strings.EqualFold(entry.GetPath()[:max(cut, 0)], folder) || cut+1 == len(entry.GetPath()) {
			return &Error{Field: field, Problem: "has " + quote(entry.GetPath()) + ", which is not in " + quote(folder)}
		}
		if _, twice := seen[entry.GetPath()]; twice {
			return &Error{Field: field, Problem: "has " + quote(entry.GetPath()) + " twice"}
		}
		seen[entry.GetPath()] = struct{}{}
	}
	return nil
}

// named is an element of a request or of a reply.
type named interface{ GetName() string }

// answered checks that a reply has one answer for each requested element, in the requested order.
func answered[Q, A named](field string, asked []Q, answers []A) *Error {
	if len(answers) != len(asked) {
		return &Error{Field: field, Problem: fmt.Sprintf("has %d elements, and %d were requested",
			len(answers), len(asked))}
	}
	for i, answer := range answers {
		if want := asked[i].GetName(); answer.GetName() != want {
			return &Error{Field: field, Problem: "has " + quote(answer.GetName()) + " in place of " + quote(want)}
		}
	}
	return nil
}
