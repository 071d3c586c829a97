package settingchange

import (
	"fmt"
	"regexp"
	"strings"
)

// gatesFlag is the flag of feature gates, and writtenGates another spelling that programs take.
const (
	gatesFlag    = "feature-gates"
	writtenGates = "feature_gates"
)

// withGate returns the value of --feature-gates with a gate, or, if value is "", without it. keep is false if none is left.
func withGate(gates, name, value string) (changed string, keep bool) {
	var all []string
	found := false
	for part := range strings.SplitSeq(gates, ",") {
		given, _, _ := strings.Cut(part, "=")
		switch {
		case strings.TrimSpace(part) == "":
		case strings.TrimSpace(given) != name:
			all = append(all, part)
		case value != "" && !found:
			all, found = append(all, name+"="+value), true
		}
	}
	if value != "" && !found {
		all = append(all, name+"="+value)
	}
	return strings.Join(all, ","), len(all) > 0
}

// A LineError reports a line of a script that swdt does not change.
type LineError struct {
	File string
	Line int
	What string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("change %s, line %d: %s; change it with an editor and run `swdt restart`", e.File, e.Line, e.What)
}

// script is the text of a script, or of kubeadm-flags.env, in which one line is changed.
type script struct {
	file string
	text string
	line int // from 1
}

// at returns the text of the line, and the offsets of it in the text.
func (s script) at() (text string, begin, end int) {
	lines := strings.SplitAfter(s.text, "\n")
	for i := range lines[:min(s.line-1, len(lines))] {
		begin += len(lines[i])
	}
	if s.line < 1 || s.line > len(lines) {
		return "", begin, begin
	}
	text = strings.TrimRight(lines[s.line-1], "\r\n")
	return text, begin, begin + len(text)
}

func (s script) fail(what string, args ...any) error {
	return &LineError{File: s.file, Line: s.line, What: fmt.Sprintf(what, args...)}
}

// with returns the text with another text of the line.
func (s script) with(line string) string {
	_, begin, end := s.at()
	return s.text[:begin] + line + s.text[end:]
}

// gate returns the text with another value of a gate on the line, or, if value is "", without the gate.
func (s script) gate(name, value string) (string, error) {
	line, _, _ := s.at()
	pair := regexp.MustCompile(`(^|[^A-Za-z0-9_])` + regexp.QuoteMeta(name) + `=([Tt]rue|[Ff]alse)($|[^A-Za-z0-9_])`)
	found := pair.FindAllStringSubmatchIndex(line, -1)
	if len(found) != 1 {
		return "", s.fail("%s is there %d times in a form that swdt reads", name, len(found))
	}
	begin, end := found[0][3], found[0][5] // NAME=VALUE
	switch before, after := line[:begin], line[end:]; {
	case value != "":
		return s.with(before + name + "=" + value + after), nil
	case strings.HasPrefix(after, ","):
		return s.with(before + after[1:]), nil
	case strings.HasSuffix(before, ","):
		return s.with(before[:len(before)-1] + after), nil
	default:
		return s.without(before, after)
	}
}

// without returns the text without the flag whose name ends the text before its value, and its value, which is between
// before and after.
func (s script) without(before, after string) (string, error) {
	flag := regexp.MustCompile(`(^|\s|["'])--?[a-z][a-z0-9_-]*(=|\s+)(["']?)$`).FindStringSubmatchIndex(before)
	if flag == nil {
		return "", s.fail("the text before it is no flag that goes with its value")
	}
	head, quote := before[:flag[3]], before[flag[6]:]
	if quote != "" {
		if !strings.HasPrefix(after, quote) {
			return "", s.fail("its quotes are not those of its value")
		}
		after = after[len(quote):]
	}
	return s.cut(head, after)
}

// cut returns the text without the flag between head and after, which are the rest of the line.
func (s script) cut(head, after string) (string, error) {
	ends := strings.HasSuffix(head, `"`) || strings.HasSuffix(head, "'")
	whole := ends && len(strings.TrimSpace(head)) == 1 && strings.TrimSpace(after) == head[len(head)-1:]+","
	switch {
	case whole: // an element of a list, on a line of its own and before another one
		_, begin, end := s.at()
		rest := strings.TrimPrefix(strings.TrimPrefix(s.text[end:], "\r"), "\n")
		return s.text[:begin] + rest, nil
	case ends && strings.TrimSpace(after) == head[len(head)-1:] && isVariable(head): // NAME="FLAGS", as in kubeadm-flags.env
		return s.with(head + after), nil
	case ends && strings.HasPrefix(after, head[len(head)-1:]):
		return "", s.fail("the flag is a text of its own, as in a list")
	case ends, strings.TrimSpace(head) == "":
		return s.with(head + strings.TrimLeft(after, " \t")), nil
	}
	return s.with(strings.TrimRight(head, " \t") + after), nil
}

// isVariable reports whether a line begins as a file of environment variables has it, up to the quote of the value.
func isVariable(head string) bool {
	return regexp.MustCompile(`^\s*(export\s+)?[A-Za-z_][A-Za-z0-9_]*=["']$`).MatchString(head)
}

// literal matches the value of a flag that a script writes out, with its quotes, and word one that is no flag of its own.
const (
	literal = `("[^"$` + "`" + `]*"|'[^'$]*'|` + plain + `+)`
	word    = `("(?:[^"$` + "`" + `-][^"$` + "`" + `]*)?"|'(?:[^'$-][^'$]*)?'|-[0-9]` + plain + `*|[^\s"'$` + "`" + `;|&()-]` + plain + `*)`
	plain   = `[^\s"'$` + "`" + `;|&()]`
)

// flag returns the text with another value of a flag on the line, or, if change returns false, without the flag.
func (s script) flag(name string, change func(value string) (string, bool)) (string, error) {
	line, _, _ := s.at()
	named := `(^|[\s"'])--?` + regexp.QuoteMeta(name)
	found := regexp.MustCompile(named+`(?:=`+literal+`|\s+`+word+`)`).FindAllStringSubmatchIndex(line, -1)
	bare := regexp.MustCompile(named+`(?:\s*$|["']|\s+["']?-[^0-9])`).FindAllStringSubmatchIndex(line, -1)
	if len(found)+len(bare) != 1 {
		return "", s.fail("--%s is there %d times with a value that is written out", name, len(found)+len(bare))
	}
	if len(bare) == 1 {
		return s.bare(name, bare[0][3], change)
	}
	begin, end := max(found[0][4], found[0][6]), max(found[0][5], found[0][7])
	written := line[begin:end]
	value := strings.Trim(written, `"'`)
	after, keep := change(value)
	switch {
	case !keep:
		return s.without(line[:begin], line[end:])
	case after == value:
		return s.text, nil
	case value == "":
		return "", s.fail("--%s has an empty text as its value", name)
	}
	if err := s.plainText(after); err != nil {
		return "", err
	}
	return s.with(line[:begin] + strings.Replace(written, value, after, 1) + line[end:]), nil
}

// bare is flag for a flag without a value, which begins at an offset of the line. Programs read it as true.
func (s script) bare(name string, begin int, change func(value string) (string, bool)) (string, error) {
	line, _, _ := s.at()
	end := begin + strings.Index(line[begin:], name) + len(name)
	after, keep := change("true")
	switch head := line[:begin]; {
	case isQuoted(head, line[end:]) && !isVariable(head):
		return "", s.fail("--%s is a text of its own, as in a list, and the next one may be its value", name)
	case !keep:
		return s.cut(line[:begin], line[end:])
	case after == "true":
		return s.text, nil
	}
	if err := s.plainText(after); err != nil {
		return "", err
	}
	return s.with(line[:end] + "=" + after + line[end:]), nil
}

// isQuoted reports whether quotes are next to a text, before and behind it.
func isQuoted(before, after string) bool {
	const quotes = `"'`
	return strings.TrimRight(before, quotes) != before && strings.TrimLeft(after, quotes) != after
}

// plainText returns an error unless every script reads a value as it is.
func (s script) plainText(value string) error {
	if strings.ContainsAny(value, " \t\"'$`;|&()%") {
		return s.fail("the value %q has characters that a script may read otherwise", value)
	}
	return nil
}

// flagsOfFields has the flags of kubelet and kube-proxy that set a field of another name: AddKubeletConfigFlags in
// cmd/kubelet/app/options/options.go, and AddFlags in cmd/kube-proxy/app/options.go, of k8s.io/kubernetes v1.36.3. Other
// flags have the field's name, as max-pods has for maxPods.
func flagsOfFields() map[string]string {
	return map[string]string{
		"resolvConf": "resolv-conf", "imageGCHighThresholdPercent": "image-gc-high-threshold",
		"imageGCLowThresholdPercent": "image-gc-low-threshold", "authentication.anonymous.enabled": "anonymous-auth",
		"authentication.webhook.enabled": "authentication-token-webhook", "authentication.x509.clientCAFile": "client-ca-file",
		"authentication.webhook.cacheTTL": "authentication-token-webhook-cache-ttl", "authorization.mode": "authorization-mode",
		"authorization.webhook.cacheAuthorizedTTL":   "authorization-webhook-cache-authorized-ttl",
		"authorization.webhook.cacheUnauthorizedTTL": "authorization-webhook-cache-unauthorized-ttl",
		"logging.verbosity":                          "v", "logging.vmodule": "vmodule", "logging.format": "logging-format",
		"registryPullQPS": "registry-qps", "eventRecordQPS": "event-qps", "staticPodPath": "pod-manifest-path",
		"staticPodURL": "manifest-url", "podPidsLimit": "pod-max-pids", "registerWithTaints": "register-with-taints",
		"clientConnection.kubeconfig": "kubeconfig", "clientConnection.burst": "kube-api-burst",
		"clientConnection.qps": "kube-api-qps", "mode": "proxy-mode", "winkernel.enableDSR": "enable-dsr",
		"winkernel.sourceVip": "source-vip", "winkernel.networkName": "network-name", "winkernel.rootHnsEndpointName": "root-hnsendpoint-name",
		"winkernel.forwardHealthCheckVip": "forward-healthcheck-vip",
	}
}

// flagOf returns the flag that sets a field too; "": there is none.
func (s *Settings) flagOf(field string) string {
	if flag := flagsOfFields()[field]; flag != "" {
		return flag
	}
	plain := strings.NewReplacer(".", "", "-", "")
	for _, flag := range s.table.Flags(s.Program, s.minor) {
		if strings.EqualFold(plain.Replace(flag), plain.Replace(field)) {
			return flag
		}
	}
	return ""
}
