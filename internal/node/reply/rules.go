package reply

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swdt-dev/swdt/internal/wire/winpath"
)

// rule is the set of values that a field may hold.
type rule struct {
	// value returns the problem of a field's value, or "" if the value is valid. If the function is
	// nil, every value is valid.
	value func(protoreflect.Value) string
	// most bounds the elements of a repeated field.
	most int
}

// list returns the rule of a repeated field. most is the largest number of elements.
func list(most int, element rule) rule { return rule{value: element.value, most: most} }

// anything accepts every value. It is also the rule of a field that holds a message, whose
// own fields have rules.
var anything = rule{}

// Bounds on lengths, in bytes.
const (
	shortText  = 1 << 10
	longText   = 64 << 10
	hugeText   = 1 << 20
	longestBin = 16 << 20
	// largestFile is more than the size of any file on Windows, in bytes.
	largestFile = 1 << 56
)

// rules has one rule for each field of each reply. Only bools, enums and single messages have no
// rule. TestEveryFieldOfAReplyHasARule detects missing rules.
var rules = sync.OnceValue(func() map[string]rule {
	return map[string]rule{
		"FactsReply.hostname":          line(shortText),
		"FactsReply.product":           line(shortText),
		"FactsReply.build":             word,
		"FactsReply.architecture":      word,
		"FactsReply.boot_id":           line(shortText),
		"FactsReply.cpus":              between(0, 1<<16),
		"FactsReply.memory_bytes":      between(0, largestFile),
		"FactsReply.memory_free_bytes": between(0, largestFile),
		"FactsReply.system_drive":      line(8),
		"FactsReply.disk_free_bytes":   anything,
		"FactsReply.pending_reboot":    list(64, line(longText)),

		"ListServicesReply.services":       list(1<<15, anything),
		"ServiceStatus.name":               line(shortText),
		"ServiceStatus.display_name":       text(shortText),
		"ServiceStatus.pid":                anything,
		"ServiceStatus.exit_code":          anything,
		"ServiceStatus.specific_exit_code": anything,
		"ServiceConfig.name":               line(shortText),
		"ServiceConfig.display_name":       text(shortText),
		"ServiceConfig.description":        text(longText),
		"ServiceConfig.command_line":       text(longText),
		"ServiceConfig.account":            line(shortText),
		"ServiceConfig.dependencies":       list(1<<10, line(shortText)),
		"Recovery.restarts":                list(1<<10, anything),
		"Recovery.actions":                 list(1<<10, anything),
		"ServiceReply.dependents":          list(1<<12, line(shortText)),
		"ServiceProgram.command_line":      text(longText),
		"ServiceProgram.wrappers":          list(1<<4, line(shortText)),
		"ServiceProgram.unknown":           text(longText),
		"ServiceProgram.logs":              list(1<<4, line(winpath.Longest)),
		"StopServiceReply.stopped":         list(1<<12, line(shortText)),

		"RegistryValue.name":       text(longText), // the name may hold any character except NUL
		"RegistryValue.type":       line(shortText),
		"RegistryValue.string":     text(longestBin),
		"RegistryValue.strings":    list(1<<16, text(longestBin)),
		"RegistryValue.integer":    anything,
		"RegistryValue.binary":     anything,
		"RegistryListReply.values": list(1<<16, anything),
		"RegistryListReply.keys":   list(1<<16, text(longText)),

		"FileInfo.path":          path,
		"FileInfo.size":          between(0, largestFile),
		"ListFilesReply.entries": list(1<<18, anything),
		"HashReply.sha256":       sha256,
		"HashReply.size":         between(0, largestFile),
		"ReadReply.data":         anything,
		"ReadReply.packed":       anything,
		"TailReply.data":         anything,
		"TailReply.utc_offset":   between(-26*3600, 26*3600),
		"TailReply.packed":       anything,
		"TailPlace.volume":       anything,
		"TailPlace.index":        anything,
		"TailPlace.offset":       between(0, largestFile),
		"TailPlace.head_size":    between(0, 1<<20),
		"TailPlace.head":         anything,
		"TailPlace.high":         anything,
		"WriteReply.size":        between(0, largestFile),
		"WriteReply.sha256":      optional(sha256),
		"PatchReply.size":        between(0, largestFile),
		"PatchReply.sha256":      sha256,
		"GetACLReply.sddl":       line(longText),

		"EnvironmentVariable.name":      line(longText),
		"EnvironmentVariable.value":     text(hugeText),
		"GetEnvironmentReply.variables": list(1<<14, anything),
		"HostsEntry.name":               line(shortText),
		"HostsEntry.address":            line(shortText),
		"GetHostsReply.entries":         list(1<<18, anything),
		"ListRootsReply.sha256":         list(1<<14, sha256),

		"Process.pid":                       anything,
		"Process.parent_pid":                anything,
		"Process.name":                      line(longText),
		"Process.image":                     line(longText),
		"Process.memory_bytes":              anything,
		"Process.handles":                   anything,
		"Process.threads":                   anything,
		"Process.session":                   anything,
		"Process.command_line":              text(longText * 2), // 32767 characters of UTF-16
		"ListProcessesReply.processes":      list(1<<16, anything),
		"ProcessEnvironmentReply.variables": list(1<<10, anything),
		"RunReply.stdout":                   anything,
		"RunReply.stderr":                   anything,
		"RunReply.exit_code":                anything,
		"RunReply.packed":                   anything,

		"Feature.name":           line(shortText),
		"FeaturesReply.features": list(1<<12, anything),

		"FirewallRule.name":            text(longText),
		"FirewallRule.group":           text(longText),
		"FirewallRule.protocol":        line(shortText),
		"FirewallRule.ports":           text(longText),
		"FirewallRule.program":         text(longText),
		"FirewallRule.profiles":        line(shortText),
		"FirewallRule.addresses":       text(longText),
		"ListFirewallRulesReply.rules": list(1<<16, anything),

		"ReachReply.connected":                line(shortText),
		"ReachReply.detail":                   text(longText),
		"ReachReply.source":                   line(shortText),
		"ResolveReply.addresses":              list(1<<12, line(shortText)),
		"StacksReply.data":                    atMost(16 << 20),
		"HTTPGetReply.status":                 between(0, 999),
		"HTTPGetReply.body":                   atMost(1 << 20),
		"ListenersReply.listeners":            list(1<<17, anything),
		"Listener.address":                    line(shortText),
		"Listener.port":                       between(0, math.MaxUint16),
		"Listener.pid":                        anything,
		"Listener.process":                    line(longText),
		"Listener.image":                      line(longText),
		"CRIVersionReply.runtime_name":        line(shortText),
		"CRIVersionReply.runtime_version":     line(shortText),
		"CRIVersionReply.runtime_api_version": line(shortText),
		"CRIStatusReply.status":               anything,
		"PipeReply.data":                      anything,
		"ConnectReply.data":                   anything,

		"InspectReply.components":          list(1<<10, anything),
		"InspectReply.transactions":        list(1<<10, anything),
		"ComponentState.name":              line(shortText),
		"ComponentState.sha256":            optional(sha256),
		"ComponentState.size":              between(0, largestFile),
		"ComponentState.version":           text(longText),
		"ComponentState.previous_sha256":   optional(sha256),
		"ComponentState.previous_version":  text(longText),
		"ComponentState.leftovers":         list(1<<12, path),
		"ComponentState.run_by":            list(1<<10, line(shortText)),
		"ComponentState.services":          list(1<<15, line(shortText)),
		"ComponentState.error":             text(hugeText),
		"Image.path":                       line(winpath.Longest),
		"Image.sha256":                     optional(sha256),
		"Image.version":                    text(longText),
		"Image.pid":                        anything,
		"Transaction.id":                   token,
		"Transaction.holder":               text(longText),
		"AcknowledgeReply.unrecorded":      text(hugeText),
		"HistoryReply.transactions":        list(1<<10, anything),
		"PastTransaction.number":           between(1, 1<<30),
		"PastTransaction.id":               token,
		"PastTransaction.holder":           text(longText),
		"PastTransaction.message":          text(longText),
		"PastTransaction.failed_component": line(shortText),
		"PastTransaction.components":       list(1<<10, anything),
		"PastComponent.name":               line(shortText),
		"PastComponent.destination":        path,
		"PastComponent.service":            line(shortText),
		"PastComponent.sha256":             optional(sha256),
		"PastComponent.previous_sha256":    optional(sha256),
		"PastComponent.previous_version":   text(longText),
		"PastComponent.version":            text(longText),
		"SwapEvent.transaction":            optional(token),
		"SwapEvent.component":              line(shortText),
		"SwapEvent.message":                text(hugeText),
		"SwapOutcome.message":              text(hugeText),
		"SwapOutcome.failed_component":     line(shortText),
		"SwapOutcome.components":           list(1<<10, anything),
		"ComponentOutcome.name":            line(shortText),
		"ComponentOutcome.message":         text(hugeText),
		"ComponentOutcome.log_lines":       list(1<<10, text(hugeText)),
		"ComponentOutcome.version":         text(longText),

		"ComputeReply.objects":     list(1<<16, anything),
		"ComputeObject.document":   anything,
		"ComputeObject.id":         line(shortText),
		"ComputeObject.properties": anything,
		"ComputeObject.failure":    text(hugeText),
	}
})

// byFullName returns the rules by the full names that descriptors hold. So a look-up makes no new
// string, which matters since a reply can have a hundred thousand fields.
var byFullName = sync.OnceValue(func() map[protoreflect.FullName]rule {
	named := map[protoreflect.FullName]rule{}
	for name, rule := range rules() {
		named[protoreflect.FullName(contract+name)] = rule
	}
	return named
})

// ruleOf returns a field's rule. A field without a rule is a bool, an enum or a single message;
// TestEveryFieldOfAReplyHasARule verifies that.
func ruleOf(field protoreflect.FieldDescriptor) rule { return byFullName()[field.FullName()] }

// ------------------------------------------------------------ kinds of values

// text returns the rule for a text of limited length in bytes. gRPC has checked that the text is
// UTF-8.
func text(most int) rule {
	return rule{value: func(v protoreflect.Value) string {
		if n := len(v.String()); n > most {
			return fmt.Sprintf("is %d bytes long, more than %d", n, most)
		}
		return ""
	}}
}

// line returns the rule for a text of limited length in bytes, without control characters.
func line(most int) rule {
	bounded := text(most).value
	return rule{value: func(v protoreflect.Value) string {
		if problem := bounded(v); problem != "" {
			return problem
		}
		if i := strings.IndexFunc(v.String(), winpath.IsControl); i >= 0 {
			return "is " + quote(v.String()) + ", with a control character"
		}
		return ""
	}}
}

// word is the rule for a short name of ASCII letters, digits, spaces, dots, underscores and
// hyphens, such as the name of a processor.
var word = rule{value: func(v protoreflect.Value) string {
	s := v.String()
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" ._-", r)
	}
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return "is " + quote(s) + ", not a name"
	}
	return ""
}}

// token is the rule for an identifier that may become part of a file's name.
var token = rule{value: func(v protoreflect.Value) string {
	s := v.String()
	if s == "" || strings.Trim(s, ".") == "" || strings.Contains(s, " ") || word.value(v) != "" {
		return "is " + quote(s) + ", not an identifier"
	}
	return ""
}}

// sha256 is the rule for a hash in lower-case hexadecimal.
var sha256 = rule{value: func(v protoreflect.Value) string {
	s := v.String()
	isHex := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' }
	if len(s) != 64 || strings.ContainsFunc(s, func(r rune) bool { return !isHex(r) }) {
		return "is " + quote(s) + ", not a SHA-256 of 64 lower-case hexadecimal digits"
	}
	return ""
}}

// path is the rule for an absolute path on a drive, which identifies exactly one file.
var path = rule{value: func(v protoreflect.Value) string {
	if problem := winpath.Problem(v.String()); problem != "" {
		return "is " + quote(v.String()) + ", " + problem
	}
	return ""
}}

func optional(of rule) rule {
	return rule{value: func(v protoreflect.Value) string {
		if v.String() == "" {
			return ""
		}
		return of.value(v)
	}}
}

// between returns the rule for a number between two inclusive bounds.
func between(least, most int64) rule {
	return rule{value: func(v protoreflect.Value) string {
		var n int64
		switch number := v.Interface().(type) {
		case int32:
			n = int64(number)
		case int64:
			n = number
		case uint32:
			n = int64(number)
		case uint64:
			n = int64(min(number, math.MaxInt64))
		default:
			return fmt.Sprintf("is a %T, not a number", number)
		}
		if n < least || n > most {
			return fmt.Sprintf("is %d, not between %d and %d", n, least, most)
		}
		return ""
	}}
}

// atMost returns the rule for a byte string of limited length.
func atMost(most int) rule {
	return rule{value: func(v protoreflect.Value) string {
		if n := len(v.Bytes()); n > most {
			return fmt.Sprintf("is %d bytes long, more than %d", n, most)
		}
		return ""
	}}
}

// quote returns text that a node has sent, quoted in one line and cut after 120 bytes.
func quote(s string) string {
	const most = 120
	if len(s) <= most {
		return strconv.QuoteToASCII(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.QuoteToASCII(s[:cut]) + "…"
}
