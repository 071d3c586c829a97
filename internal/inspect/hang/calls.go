package hang

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	// longestLine bounds a line of containerd's log, in bytes; a longer one is skipped.
	longestLine = 256 << 10
	// mostCalls bounds the calls that are remembered and returned.
	mostCalls = 1000
)

// These recognise lines of containerd's log: pkg/cri/instrument of 1.7, pkg/cri/server of 1.6, internal/cri/instrument of 2.x. The
// log has other messages that begin with the name of a method, such as PullImage.
var (
	logTime    = regexp.MustCompile(`\btime="([^"]{20,40})"`)
	logMessage = regexp.MustCompile(`\bmsg=("(?:[^"\\]|\\.)*")`)
	callBegins = regexp.MustCompile(`^(?:(RunPodSandbox) for .+|(CreateContainer) within sandbox "[^"]+" for container .+|` +
		`(StopPodSandbox|RemovePodSandbox|StartContainer|RemoveContainer) for "[^"]+"|(StopContainer) for "[^"]+" with timeout -?\d+ \(s\)|` +
		`(UpdateContainerResources) for "[^"]+" with .+|(PullImage) "[^"]+")$`)
	callEnds = regexp.MustCompile(`^(?:(RunPodSandbox) for .+ (?:failed, error|failed|returns sandbox id "[^"]+")|` +
		`(CreateContainer) within sandbox "[^"]+" for .+ (?:failed|returns container id "[^"]+")|` +
		`(StopPodSandbox|RemovePodSandbox|StartContainer|RemoveContainer|StopContainer|UpdateContainerResources) (?:for )?"[^"]+" ` +
		`(?:failed|returns successfully)|(PullImage) "[^"]+" (?:failed|returns image reference "[^"]+"))$`)
	// containerd 2.3 and later print metadata as protobuf's text, in which the number of spaces changes and a zero is left out.
	sandboxMeta = regexp.MustCompile(`&PodSandboxMetadata\{Name:([^,{}]{1,253}),Uid:[^,{}]*,Namespace:([^,{}]{1,63}),Attempt:(\d+),|` +
		`\bname:"([^"\\]{1,253})"\s+uid:"[^"\\]*"\s+namespace:"([^"\\]{1,63})"(?:\s+attempt:(\d+))?`)
	containerMeta = regexp.MustCompile(`&ContainerMetadata\{Name:([^,{}]{1,63}),Attempt:(\d+),|` +
		`\bname:"([^"\\]{1,63})"(?:\s+attempt:(\d+))?`)
	quoted = regexp.MustCompile(`"([^"\\]{1,300})"`)
)

// openCalls are the calls of one method with one subject that have begun and not ended. kubelet tries a call again while the first
// one hangs: a call that ends is taken for the newest, so the oldest keeps its time.
type openCalls struct {
	oldest Call
	count  int
}

// pods are the names of pods, as namespace/name, by the IDs of their sandboxes and containers.
type pods map[string]string

// readCalls returns the calls that a part of containerd's log begins and does not end, the oldest first. It adds to known the
// pods that the log names. now is the node's clock.
func readCalls(r io.Reader, known pods, now time.Time) ([]Call, error) {
	open := map[string]openCalls{}
	scanner := bufio.NewReaderSize(r, longestLine)
	for {
		line, err := scanner.ReadSlice('\n')
		for err == bufio.ErrBufferFull { // skip the rest of a line that is too long
			line = nil
			_, err = scanner.ReadSlice('\n')
		}
		readCall(string(line), open, known)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	calls := []Call{}
	for _, same := range open {
		c := same.oldest
		c.Pod = cmp.Or(c.Pod, known[c.Subject])
		if c.Began != nil {
			c.Seconds = max(0, now.Sub(*c.Began).Seconds())
		}
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), strings.Compare(a.Method, b.Method), strings.Compare(a.Subject, b.Subject))
	})
	return calls, nil
}

// readCall reads one line: it adds the call that the line begins to open, or removes the one that it ends.
func readCall(line string, open map[string]openCalls, known pods) {
	message, at := messageOf(line)
	if strings.HasPrefix(message, "starting containerd") { // the calls to an earlier process have ended with it
		clear(open)
		return
	}
	end := callEnds.FindStringSubmatch(message)
	call := end
	if call == nil {
		call = callBegins.FindStringSubmatch(message)
	}
	if call == nil {
		return
	}
	c := Call{Method: cmp.Or(call[1:]...), Began: at}
	ids, meta := quoted.FindAllStringSubmatch(message, 8), sandboxMeta.FindStringSubmatch(message)
	key := ""
	switch container := containerMeta.FindStringSubmatch(message); {
	case meta != nil:
		c.Subject = clean(cmp.Or(meta[2], meta[5]) + "/" + cmp.Or(meta[1], meta[4]))
		c.Pod, key = c.Subject, c.Subject+"/"+cmp.Or(meta[3], meta[6], "0")
	case len(ids) == 0:
		return
	default:
		c.Subject = clean(ids[0][1])
		key = c.Subject
		if container != nil {
			key += "/" + cmp.Or(container[1], container[3]) + "/" + cmp.Or(container[2], container[4], "0")
		}
	}
	key = c.Method + " " + key
	same, begun := open[key]
	switch {
	case end != nil && same.count > 1:
		open[key] = openCalls{same.oldest, same.count - 1}
	case end != nil:
		delete(open, key)
	case begun:
		open[key] = openCalls{same.oldest, same.count + 1}
	case len(open) < mostCalls:
		open[key] = openCalls{c, 1}
	}
	if end != nil && strings.Contains(message, " returns ") {
		learnPod(c, ids, known)
	}
}

// messageOf returns the message of a line and its time, in containerd's text format or in that of [debug] format = "json"; "" if
// it has none.
func messageOf(line string) (message string, at *time.Time) {
	if strings.HasPrefix(line, "{") {
		var entry struct{ Msg, Time string }
		if json.Unmarshal([]byte(line), &entry) != nil {
			return "", nil
		}
		return entry.Msg, timeOf(entry.Time)
	}
	m := logMessage.FindStringSubmatch(line)
	if m == nil {
		return "", nil
	}
	message, err := strconv.Unquote(m[1])
	if err != nil {
		return "", nil
	}
	if m := logTime.FindStringSubmatch(line); m != nil {
		at = timeOf(m[1])
	}
	return message, at
}

// learnPod remembers the ID that a call returned.
func learnPod(c Call, ids [][]string, known pods) {
	if len(known) >= 10*mostCalls || len(ids) == 0 {
		return
	}
	returned := clean(ids[len(ids)-1][1])
	switch {
	case c.Method == "RunPodSandbox" && c.Pod != "":
		known[returned] = c.Pod
	case c.Method == "CreateContainer" && len(ids) > 1 && known[c.Subject] != "":
		known[returned] = known[c.Subject]
	}
}

// timeOf returns the time that a text has; nil: it has none.
func timeOf(text string) *time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil
	}
	t = t.UTC()
	return &t
}

// clean returns a text of a node without characters that control a terminal, and bounded.
func clean(text string) string {
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return ui.Printable(text)
}
