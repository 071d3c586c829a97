package hang

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The lines are those that containerd 1.7.12 writes: pkg/cri/instrument/instrumented_service.go, by logrus' text format. The names
// are invented.
const containerdLog = `time="2026-11-30T09:00:00.000000000Z" level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:lost,Uid:1,Namespace:shop,Attempt:0,}"
time="2026-11-30T09:59:00.000000000Z" level=info msg="starting containerd" revision=71909c1 version=v1.7.12
time="2026-11-30T10:00:00.000000000Z" level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:web-1,Uid:2,Namespace:shop,Attempt:0,}"
time="2026-11-30T10:00:01.000000000Z" level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:web-1,Uid:2,Namespace:shop,Attempt:0,} returns sandbox id \"aaa\""
time="2026-11-30T10:00:02.000000000Z" level=info msg="CreateContainer within sandbox \"aaa\" for container &ContainerMetadata{Name:web,Attempt:0,}"
time="2026-11-30T10:00:03.000000000Z" level=info msg="CreateContainer within sandbox \"aaa\" for &ContainerMetadata{Name:web,Attempt:0,} returns container id \"bbb\""
time="2026-11-30T10:00:04.000000000Z" level=info msg="StartContainer for \"bbb\""
time="2026-11-30T10:00:05.000000000Z" level=info msg="StartContainer for \"bbb\" returns successfully"
time="2026-11-30T10:00:06.000000000Z" level=info msg="PullImage \"registry.example/web:1\""
time="2026-11-30T10:01:00.000000000Z" level=info msg="StopContainer for \"bbb\" with timeout 30 (s)"
time="2026-11-30T10:02:00.000000000Z" level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:web-2,Uid:3,Namespace:shop,Attempt:1,}"
time="2026-11-30T10:02:01.000000000Z" level=info msg="StopPodSandbox for \"ccc\""
time="2026-11-30T10:02:02.000000000Z" level=error msg="StopPodSandbox for \"ccc\" failed" error="context deadline exceeded"
time="2026-11-30T10:02:03.000000000Z" level=info msg="StopPodSandbox for \"aaa\""
time="2026-11-30T10:02:04.000000000Z" level=error msg="PullImage \"registry.example/web:1\" failed" error="no"
`

// inProtobuf is the log in the form of containerd 2.4.2, seen under Wine.
func inProtobuf(t *testing.T) string {
	t.Helper()
	text := regexp.MustCompile(`&PodSandboxMetadata\{Name:([^,]*),Uid:([^,]*),Namespace:([^,]*),Attempt:(\d),}`).ReplaceAllString(containerdLog,
		`name:\"$1\"  uid:\"$2\"  namespace:\"$3\" attempt:$4`)
	text = regexp.MustCompile(`&ContainerMetadata\{Name:([^,]*),Attempt:0,}`).ReplaceAllString(text, `name:\"$1\"`)
	text = strings.ReplaceAll(text, " attempt:0", "")
	if !strings.Contains(text, `msg="RunPodSandbox for name:\"web-1\"  uid:\"2\"  namespace:\"shop\" returns sandbox id \"aaa\""`) {
		t.Fatal(text)
	}
	return text
}

func TestCallsWithoutAnAnswer(t *testing.T) {
	now := time.Date(2026, 11, 30, 10, 5, 0, 0, time.UTC)
	for name, text := range map[string]string{"LF": containerdLog, "CRLF": strings.ReplaceAll(containerdLog, "\n", "\r\n"),
		"2.4.2": inProtobuf(t), "JSON": inJSON(t)} {
		calls, err := readCalls(strings.NewReader(text), pods{}, now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range calls {
			got = append(got, strings.Join([]string{c.Method, c.Subject, c.Pod, age(c.Seconds)}, " "))
		}
		want := []string{"StopContainer bbb shop/web-1 4m0s", "RunPodSandbox shop/web-2 shop/web-2 3m0s", "StopPodSandbox aaa shop/web-1 2m57s"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The log of a hostile node is bounded, and cannot name calls that are none.
func TestAHostileLogIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, text := range map[string]string{
		"long line":   `msg="StopPodSandbox for \"` + long + `\""`,
		"escapes":     "msg=\"StopPodSandbox for \\\"a\x1b[2Jb\\\"\"\n",
		"many":        many(3 * mostCalls),
		"no quotes":   `msg="StopPodSandbox"` + "\n" + `msg="StopPodSandbox for` + "\n" + `msg="` + strings.Repeat(`\`, 1000),
		"future time": `time="2999-01-01T00:00:00Z" msg="StopPodSandbox for \"a\""`,
		"bad time":    `time="99999999999999999999999" msg="StopPodSandbox for \"a\""`,
	} {
		known := pods{}
		calls, err := readCalls(strings.NewReader(text), known, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		if err != nil || len(calls) > mostCalls || len(known) > 10*mostCalls {
			t.Errorf("%s: %d calls, %v", name, len(calls), err)
		}
		for _, c := range calls {
			if strings.ContainsAny(c.Subject, "\x1b") || len(c.Subject) > 400 || c.Seconds < 0 {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

func many(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(`msg="StopPodSandbox for \"` + strings.Repeat("a", i%200+1) + strings.Repeat("b", i/200+1) + "\\\"\"\n")
	}
	return text.String()
}

// kubelet tries a call again while the first one hangs. The hung one stays, with its own time.
func TestACallThatIsTriedAgainKeepsTheOldest(t *testing.T) {
	const begins = `time="2026-11-30T10:0%.000000000Z" level=info msg="StopPodSandbox for \"aaa\""` + "\n"
	const ends = `time="2026-11-30T10:03:30.000000000Z" level=error msg="StopPodSandbox for \"aaa\" failed" error="no"` + "\n"
	first, again := strings.Replace(begins, "%", "0:00", 1), strings.Replace(begins, "%", "3:00", 1)
	const debug = `time="2026-11-30T10:04:00.000000000Z" level=debug msg="PullImage using normalized image ref: \"docker.io/library/web:1\""` + "\n"
	const removed = `time="2026-11-30T10:00:00.000000000Z" level=info msg="RemovePodSandbox for \"aaa\""` + "\n" +
		`time="2026-11-30T10:00:01.000000000Z" level=info msg="RemovePodSandbox \"aaa\" returns successfully"` + "\n"
	for name, c := range map[string]struct{ log, want string }{
		"again":           {first + again, "StopPodSandbox 5m0s"},
		"again and ended": {first + again + ends, "StopPodSandbox 5m0s"},
		"both ended":      {first + again + ends + ends, ""},
		"a debug message": {debug, ""},
		"removed":         {removed, ""},
	} {
		calls, _ := readCalls(strings.NewReader(c.log), pods{}, time.Date(2026, 11, 30, 10, 5, 0, 0, time.UTC))
		got := ""
		for _, call := range calls {
			got += call.Method + " " + age(call.Seconds)
		}
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// inJSON is the log in the form of [debug] format = "json": logrus' JSONFormatter, in containerd/log, context.go.
func inJSON(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(containerdLog) {
		message, at := messageOf(line)
		text, err := json.Marshal(map[string]any{"level": "info", "msg": message, "time": at})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(text, '\n'))
	}
	return out.String()
}
