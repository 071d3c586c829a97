package reply

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/checked"
	"github.com/swdt-dev/swdt/internal/wire/winpath"
)

// methods returns all RPCs of the contract.
func methods() (all []protoreflect.MethodDescriptor) {
	protoregistry.GlobalFiles.RangeFilesByPackage("swdt.agent.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				all = append(all, methods.Get(j))
			}
		}
		return true
	})
	return all
}

// replies returns the messages that a node can send, and those inside them.
func replies() map[protoreflect.FullName]protoreflect.MessageDescriptor {
	found := map[protoreflect.FullName]protoreflect.MessageDescriptor{}
	var visit func(protoreflect.MessageDescriptor)
	visit = func(m protoreflect.MessageDescriptor) {
		if _, seen := found[m.FullName()]; seen || m.ParentFile().Package() != "swdt.agent.v1" {
			return
		}
		found[m.FullName()] = m
		for i := range m.Fields().Len() {
			if nested := m.Fields().Get(i).Message(); nested != nil {
				visit(nested)
			}
		}
	}
	for _, method := range methods() {
		visit(method.Output())
	}
	return found
}

func TestEveryFieldOfAReplyHasARule(t *testing.T) {
	used := map[string]bool{}
	for _, message := range replies() {
		for i := range message.Fields().Len() {
			field := message.Fields().Get(i)
			rule, ok := rules()[fieldName(field)]
			used[fieldName(field)] = true
			switch {
			case field.IsMap() || field.Kind() == protoreflect.GroupKind:
				t.Errorf("%s is of a kind that package reply does not check", fieldName(field))
			case field.IsList() && (!ok || rule.most == 0):
				t.Errorf("%s has no bound on its elements: give it a rule", fieldName(field))
			case !field.IsList() && rule.most != 0:
				t.Errorf("%s is not repeated, and its rule is a list's", fieldName(field))
			case !ok && !slices.Contains([]protoreflect.Kind{protoreflect.MessageKind, protoreflect.BoolKind,
				protoreflect.EnumKind}, field.Kind()):
				t.Errorf("%s has no rule", fieldName(field))
			}
		}
	}
	for name := range rules() {
		if !used[name] {
			t.Errorf("the rule %s is of no field", name)
		}
	}
}

func TestRequiredFieldsExist(t *testing.T) {
	for name := range replies() {
		message := newMessage(t, name)
		for _, field := range required(message) {
			if message.ProtoReflect().Descriptor().Fields().ByName(field) == nil {
				t.Errorf("%s has no field %s", name, field)
			}
		}
	}
}

func newMessage(t testing.TB, name protoreflect.FullName) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

const someHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestInvalidRepliesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		message proto.Message
		field   string // empty: it is accepted
	}{
		"a hash":                   {&agentv1.HashReply{Sha256: someHash, Size: 5}, ""},
		"no hash":                  {&agentv1.HashReply{Size: 5}, "HashReply.sha256"},
		"a short hash":             {&agentv1.HashReply{Sha256: "abc"}, "HashReply.sha256"},
		"a hash that is a path":    {&agentv1.HashReply{Sha256: `..\..\` + someHash[6:]}, "HashReply.sha256"},
		"a hash in capitals":       {&agentv1.HashReply{Sha256: strings.ToUpper(someHash)}, "HashReply.sha256"},
		"a negative size":          {&agentv1.HashReply{Sha256: someHash, Size: -1}, "HashReply.size"},
		"a huge size":              {&agentv1.HashReply{Sha256: someHash, Size: 1<<63 - 1}, "HashReply.size"},
		"a path":                   {&agentv1.FileInfo{Path: `C:\Program Files\a (1).txt`}, ""},
		"a drive":                  {&agentv1.FileInfo{Path: `C:\`}, ""},
		"a path above":             {&agentv1.FileInfo{Path: `C:\k\..\..\x`}, "FileInfo.path"},
		"a relative path":          {&agentv1.FileInfo{Path: `k\x`}, "FileInfo.path"},
		"a POSIX path":             {&agentv1.FileInfo{Path: `/etc/passwd`}, "FileInfo.path"},
		"a UNC path":               {&agentv1.FileInfo{Path: `\\server\share\x`}, "FileInfo.path"},
		"a device path":            {&agentv1.FileInfo{Path: `\\.\pipe\x`}, "FileInfo.path"},
		"an alternate data stream": {&agentv1.FileInfo{Path: `C:\k\x:stream`}, "FileInfo.path"},
		"a slash in a name":        {&agentv1.FileInfo{Path: `C:\k\../../x`}, "FileInfo.path"},
		"a path with a line feed":  {&agentv1.FileInfo{Path: "C:\\k\\x\n"}, "FileInfo.path"},
		"a path with an escape":    {&agentv1.FileInfo{Path: "C:\\k\\\x1b[2J"}, "FileInfo.path"},
		"a path with NUL":          {&agentv1.FileInfo{Path: "C:\\k\\x\x00"}, "FileInfo.path"},
		"an endless path": {&agentv1.FileInfo{Path: `C:\` + strings.Repeat(`a\`, 60000) + "a"},
			"FileInfo.path"},
		"a time before all": {&agentv1.FileInfo{Path: `C:\x`,
			Modified: &timestamppb.Timestamp{Seconds: -1 << 60}}, "FileInfo.modified"},
		"a time after all": {&agentv1.FileInfo{Path: `C:\x`,
			Modified: &timestamppb.Timestamp{Seconds: 1 << 60}}, "FileInfo.modified"},
		"the first year of Windows": {&agentv1.FileInfo{Path: `C:\x`,
			Modified: timestamppb.New(time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC))}, ""},
		"the last year": {&agentv1.FileInfo{Path: `C:\x`,
			Modified: timestamppb.New(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))}, ""},
		"the longest duration":      {&agentv1.FactsReply{Uptime: durationpb.New(longestTime)}, ""},
		"the longest way back":      {&agentv1.FactsReply{Uptime: durationpb.New(-longestTime)}, ""},
		"a duration that is longer": {&agentv1.FactsReply{Uptime: durationpb.New(longestTime + 1)}, "FactsReply.uptime"},
		"a time before Windows' first": {&agentv1.FileInfo{Path: `C:\x`,
			Modified: timestamppb.New(time.Date(1600, 12, 31, 23, 59, 59, 0, time.UTC))}, "FileInfo.modified"},
		"a duration of no sense": {&agentv1.FactsReply{Uptime: &durationpb.Duration{Seconds: 1 << 62}},
			"FactsReply.uptime"},
		"nested": {&agentv1.ListFilesReply{Entries: []*agentv1.FileInfo{{Path: `..`}}},
			"FileInfo.path"},
		"an enum":                     {&agentv1.TailReply{Event: agentv1.TailEvent_TAIL_EVENT_LOST}, ""},
		"an enum's unknown number":    {&agentv1.TailReply{Event: 9}, "TailReply.event"},
		"a negative enum":             {&agentv1.ComponentOutcome{Action: -1}, "ComponentOutcome.action"},
		"an outcome":                  {&agentv1.ReachReply{Outcome: agentv1.ReachOutcome_REACH_OUTCOME_REACHED}, ""},
		"an unknown outcome":          {&agentv1.ReachReply{Outcome: 99}, "ReachReply.outcome"},
		"a state that is new to us":   {&agentv1.ServiceStatus{}, ""},
		"a state without a name":      {&agentv1.ServiceStatus{State: 9}, "ServiceStatus.state"},
		"a start type without a name": {&agentv1.ServiceConfig{StartType: -1}, "ServiceConfig.start_type"},
		"a feature without a state":   {&agentv1.Feature{State: 5}, "Feature.state"},
		"an event without a state":    {&agentv1.SwapEvent{State: 99}, "SwapEvent.state"},
		"a transaction in no state": {&agentv1.Transaction{Id: "t", State: 1 << 30},
			"Transaction.state"},
		"a simulation without a name": {&agentv1.FactsReply{Simulated: 3}, "FactsReply.simulated"},
		"a transaction's id":          {&agentv1.Transaction{Id: `..`}, "Transaction.id"},
		"an outcome without a result": {&agentv1.SwapEvent{Outcome: &agentv1.SwapOutcome{}}, "SwapOutcome.result"},
		"a port":                      {&agentv1.Listener{Port: 70000}, "Listener.port"},
		"many elements": {&agentv1.FactsReply{PendingReboot: make([]string, 65)},
			"FactsReply.pending_reboot"},
		"as many elements as allowed": {&agentv1.FactsReply{PendingReboot: make([]string, 64)}, ""},
		"an invalid element":          {&agentv1.FactsReply{PendingReboot: []string{"a", "\n"}}, "FactsReply.pending_reboot"},
		"no path":                     {&agentv1.FileInfo{}, "FileInfo.path"},
		"no transaction's id":         {&agentv1.Transaction{}, "Transaction.id"},
		"a patch without a hash":      {&agentv1.PatchReply{}, "PatchReply.sha256"},
		"data":                        {&agentv1.ReadReply{Data: []byte("a")}, ""},
		"packed data":                 {&agentv1.ReadReply{Packed: []byte("a")}, ""},
		"no data":                     {&agentv1.ReadReply{}, "ReadReply.data"},
		"an empty piece of a pipe":    {&agentv1.PipeReply{}, ""},
		"a long text":                 {&agentv1.ComputeObject{Id: strings.Repeat("x", 2000)}, "ComputeObject.id"},
		"more body than is sent": {&agentv1.HTTPGetReply{Status: 200, Body: make([]byte, 1<<20+1)},
			"HTTPGetReply.body"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := proto.Marshal(c.message)
			if err != nil {
				t.Fatal(err)
			}
			refused := decode(data, newMessage(t, c.message.ProtoReflect().Descriptor().FullName()))
			switch {
			case refused == nil && c.field != "":
				t.Error("accepted")
			case refused != nil && refused.Field != c.field:
				t.Errorf("refused %s: %v", refused.Field, refused)
			case refused != nil && (len(refused.Error()) > 700 || strings.ContainsFunc(refused.Error(), winpath.IsControl)):
				t.Errorf("not fit to print: %q", refused.Error())
			}
		})
	}
}

// An element of two bytes takes a hundred bytes in memory: sixteen megabytes of such elements must
// not become a gigabyte.
func TestElementsAreCountedBeforeTheyAreDecoded(t *testing.T) {
	data := []byte(strings.Repeat("\x0a\x00", 8<<20))
	allocated := testing.AllocsPerRun(1, func() {
		refused := decode(data, &agentv1.ListProcessesReply{})
		switch {
		case refused == nil:
			t.Error("refused is nil")
		case refused.Field != "ListProcessesReply.processes":
			t.Errorf("refused.Field is %q, want %q", refused.Field, "ListProcessesReply.processes")
		}
	})
	if allocated > 1000 {
		t.Errorf("%v allocations", allocated)
	}
}

func TestAFieldThatTheContractDoesNotHaveIsRefused(t *testing.T) {
	switch refused := decode([]byte("\xfa\x01\x02hi"), &agentv1.HashReply{}); {
	case refused == nil:
		t.Error("refused is nil")
	case refused.Field != "HashReply.31":
		t.Errorf("refused.Field is %q, want %q", refused.Field, "HashReply.31")
	}
}

func TestEncodingsThatAreNoMessages(t *testing.T) {
	for name, test := range map[string]struct {
		data  string
		to    proto.Message
		field string
	}{
		"a cut tag":                             {"\x80", &agentv1.HashReply{}, "HashReply"},
		"a cut text":                            {"\x0a\x05a", &agentv1.HashReply{}, "HashReply"},
		"a number for an element":               {"\x08\x01", &agentv1.ListFilesReply{}, "ListFilesReply.entries"},
		"a cut text in an element":              {"\x0a\x02\x0a\x05", &agentv1.ListFilesReply{}, "FileInfo"},
		"a field that is unknown in an element": {"\x0a\x03\xfa\x01\x00", &agentv1.ListFilesReply{}, "FileInfo.31"},
		"a text that is not UTF-8":              {"\x0a\x01\xff", &agentv1.HashReply{}, "HashReply"},
	} {
		if refused := decode([]byte(test.data), test.to); refused == nil || refused.Field != test.field {
			t.Errorf("%s: refused %+v, want %s", name, refused, test.field)
		}
	}
}

func TestRepliesBelongToTheirRequests(t *testing.T) {
	list := func(paths ...string) *agentv1.ListFilesReply {
		reply := &agentv1.ListFilesReply{}
		for _, path := range paths {
			reply.Entries = append(reply.Entries, &agentv1.FileInfo{Path: path})
		}
		return reply
	}
	inspect := func(names ...string) *agentv1.InspectReply {
		reply := &agentv1.InspectReply{}
		for _, name := range names {
			reply.Components = append(reply.Components, &agentv1.ComponentState{Name: name})
		}
		return reply
	}
	features := func(names ...string) *agentv1.FeaturesReply {
		reply := &agentv1.FeaturesReply{}
		for _, name := range names {
			reply.Features = append(reply.Features, &agentv1.Feature{Name: name})
		}
		return reply
	}
	containers := &agentv1.GetFeaturesRequest{Names: []string{"Containers"}}
	asked := &agentv1.InspectRequest{Components: []*agentv1.InspectComponent{{Name: "a"}, {Name: "b"}}}
	for name, c := range map[string]struct {
		request, reply any
		refused        bool
	}{
		"entries":                {&agentv1.ListFilesRequest{Path: `C:/K/`}, list(`C:\k\a`, `C:\k\b`), false},
		"of a drive":             {&agentv1.ListFilesRequest{Path: `C:\`}, list(`C:\a`), false},
		"another folder's":       {&agentv1.ListFilesRequest{Path: `C:\k`}, list(`C:\other\a`), true},
		"a folder's below":       {&agentv1.ListFilesRequest{Path: `C:\k`}, list(`C:\k\x\a`), true},
		"the folder itself":      {&agentv1.ListFilesRequest{Path: `C:\k`}, list(`C:\k`), true},
		"the folder with an end": {&agentv1.ListFilesRequest{Path: `C:\k`}, list(`C:\k\`), true},
		"an entry twice":         {&agentv1.ListFilesRequest{Path: `C:\k`}, list(`C:\k\a`, `C:\k\a`), true},
		"components":             {asked, inspect("a", "b"), false},
		"too few":                {asked, inspect("a"), true},
		"too many":               {asked, inspect("a", "b", "c"), true},
		"in another order":       {asked, inspect("b", "a"), true},
		"a feature":              {containers, features("Containers"), false},
		"no feature":             {containers, features(), true},
		"another feature":        {containers, features("Hyper-V"), true},
	} {
		if got := related(c.request, c.reply); (got != nil) != c.refused {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// replay is a stream of prepared replies.
type replay struct {
	grpc.ClientStream
	messages []proto.Message
}

func (r *replay) RecvMsg(to any) error {
	if len(r.messages) == 0 {
		return io.EOF
	}
	data, err := proto.Marshal(r.messages[0])
	r.messages = r.messages[1:]
	if err != nil {
		return err
	}
	return checked.Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, to)
}

func TestMessagesAfterTheEndAreRefused(t *testing.T) {
	open := func(messages ...proto.Message) grpc.ClientStream {
		s, err := stream(t.Context(), nil, nil, "/swdt.agent.v1.Processes/Run",
			func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string,
				...grpc.CallOption) (grpc.ClientStream, error) {
				return &replay{messages: messages}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open(&agentv1.RunReply{Stdout: []byte("a")}, &agentv1.RunReply{Exited: true},
		&agentv1.RunReply{Stdout: []byte("b")})
	for range 2 {
		if err := s.RecvMsg(&agentv1.RunReply{}); err != nil {
			t.Fatal(err)
		}
	}
	var refused *Error
	after := &agentv1.RunReply{}
	switch err := s.RecvMsg(after); {
	case !errors.As(err, &refused):
		t.Errorf("the error is %v, a %T, want a %T", err, err, refused)
	case refused.Method != "Processes/Run":
		t.Errorf("refused.Method is %q, want %q", refused.Method, "Processes/Run")
	case len(after.GetStdout()) > 0:
		t.Errorf("after.GetStdout() is %v, want it empty", after.GetStdout())
	}
}

// FuzzReply decodes arbitrary data as each of the messages that a node can send.
func FuzzReply(f *testing.F) {
	var names []protoreflect.FullName
	for _, method := range methods() {
		names = append(names, method.Output().FullName())
	}
	for i := range names {
		f.Add(uint(i), []byte("\x0a\x02\x0a\x00\x12\x40"+someHash))
	}
	f.Add(uint(0), []byte(strings.Repeat("\x0a\x00", 1<<12)))
	f.Fuzz(func(t *testing.T, kind uint, data []byte) {
		message := newMessage(t, names[kind%uint(len(names))])
		refused := decode(data, message)
		if refused != nil {
			if text := refused.Error(); len(text) > 1000 || strings.ContainsFunc(text, winpath.IsControl) {
				t.Errorf("not fit to print: %q", text)
			}
			return
		}
		again, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		if refused := decode(again, newMessage(t, message.ProtoReflect().Descriptor().FullName())); refused != nil {
			t.Errorf("refused when it came again: %v", refused)
		}
		_ = related(&agentv1.ListFilesRequest{Path: `C:\k`}, asList(message))
	})
}

func asList(message proto.Message) *agentv1.ListFilesReply {
	if list, ok := message.(*agentv1.ListFilesReply); ok {
		return list
	}
	return &agentv1.ListFilesReply{}
}
