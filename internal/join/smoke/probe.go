package smoke

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// connectSeconds and requestSeconds bound one request of curl.
	connectSeconds, requestSeconds = 5, 10
	// execLimit bounds the run of curl in a container, in case curl does not end by itself.
	execLimit = 20 * time.Second
	// echoed is the size of the text in an echo request, in bytes. The text needs several packets,
	// so that a wrong MTU makes the request fail.
	echoed = 3000
	// maxOutput bounds the output of a command, in bytes.
	maxOutput = 16 << 10
	// maxText bounds a text that a node or a pod has sent, and maxMessage bounds a message that
	// contains several of these texts. Both are in characters.
	maxText, maxMessage = 400, 1500
)

// The exit codes of curl that request.wrong explains in its error.
const (
	curlUnresolved = 6
	curlRefused    = 7
	curlTimeout    = 28
)

// request is a request from one pod to a server.
type request struct {
	from   cluster.Pod
	system string // the operating system of the pod
	url    string
	echo   string // the text that the server is to return; "": any answer is right
}

// answer is the result of a request.
type answer struct {
	code     int // curl's exit code
	body     string
	status   int  // HTTP's status; 0: there was no answer
	resolved bool // the name was resolved
	stderr   string
}

// command returns curl's command line. It avoids *, since curl's builds for Windows replace it by names
// of files.
func (q request) command() []string {
	program := "curl"
	if q.system == windows {
		program = "curl.exe"
	}
	line := []string{program, "--silent", "--show-error", "--insecure",
		"--connect-timeout", strconv.Itoa(connectSeconds), "--max-time", strconv.Itoa(requestSeconds),
		"--write-out", `\n%{http_code} %{time_namelookup}`}
	if q.echo != "" {
		line = append(line, "--data", "msg="+q.echo)
	}
	return append(line, q.url)
}

// send runs curl in the pod. An error means that curl was not run, or that its result is unknown.
func (w *run) send(ctx context.Context, q request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, execLimit)
	defer cancel()
	result, err := w.Kubelets.Exec(ctx, q.from, container, maxOutput, q.command()...)
	if err != nil {
		return answer{}, err
	}
	a := answer{code: result.Code, stderr: result.Stderr}
	end := strings.LastIndexByte(result.Stdout, '\n')
	a.body = strings.TrimRight(result.Stdout[:max(end, 0)], "\r\n")
	if numbers := strings.Fields(result.Stdout[end+1:]); len(numbers) == 2 {
		a.status, _ = strconv.Atoi(numbers[0]) // 0 if the text is no number
		seconds, err := strconv.ParseFloat(numbers[1], 64)
		a.resolved = err == nil && seconds > 0
	}
	return a, nil
}

// wrong returns an error if the answer is not the expected answer, and nil otherwise.
func (q request) wrong(a answer) error {
	switch {
	case a.code == 0 && a.status == 0:
		return fmt.Errorf("%s: curl ended without an answer; is it curl that the image has?", q.url)
	case a.code == 0 && q.echo != "" && a.body != q.echo:
		return fmt.Errorf("%s: the answer (HTTP %d) is not of swdt's server: %s; does another machine have its address?",
			q.url, a.status, shortened(a.body, maxText))
	case a.code == 0:
		return nil
	}
	words := map[int]string{
		curlUnresolved: "the name is not resolved", curlRefused: "no connection", curlTimeout: "no answer in time",
	}
	text := fmt.Sprintf("%s: curl ended with exit code %d", q.url, a.code)
	if meaning, ok := words[a.code]; ok {
		text = q.url + ": " + meaning
	}
	if a.stderr != "" {
		text += " (" + firstLine(a.stderr) + ")"
	}
	return fmt.Errorf("%s", text)
}

// notFromAPI is like wrong for a request for the version of the API server. Another machine, such as a proxy of the
// company, may answer at its address too. An API server that refuses anonymous requests answers with a Status.
func (q request) notFromAPI(a answer) error {
	if err := q.wrong(a); err != nil {
		return err
	}
	var body struct{ Kind, GitVersion string }
	if err := json.Unmarshal([]byte(a.body), &body); err == nil && (body.GitVersion != "" || body.Kind == "Status") {
		return nil
	}
	return fmt.Errorf("%s: the answer (HTTP %d) is not of an API server: %s; does another machine have its address?", q.url,
		a.status, shortened(a.body, maxText))
}

// reach repeats a request until the function right returns nil for the answer. hint is the remedy
// in the error of reach.
func (w *run) reach(ctx context.Context, q request, right func(answer) error, hint string) error {
	err := wait.Condition{
		Name: "an answer of " + q.url, Interval: interval, MaxInterval: maxInterval, Limit: requestLimit,
		Look: func(ctx context.Context) error {
			a, err := w.send(ctx, q)
			if err != nil {
				return wait.StopIf(denied(err), &failure{shortened(err.Error(), maxText), "does the node's kubelet answer?"})
			}
			if err := right(a); err != nil {
				return &failure{err.Error(), hint}
			}
			return nil
		},
	}.Wait(ctx)
	return late(ctx, err, "reached")
}

// echo returns a request with a random text, which the server must return unchanged.
func echo(from cluster.Pod, system, hostPort string) request {
	text := rand.Text()
	return request{from: from, system: system, url: "http://" + hostPort + "/echo",
		echo: text + strings.Repeat("x", echoed-len(text))}
}

// logsAndExec returns nil once the kubelet has served the log of a pod and has run a command in the
// pod. It retries for at most requestLimit.
func (w *run) logsAndExec(ctx context.Context, pod cluster.Pod, system string) error {
	const hint = "does the API server reach port 10250 of the node? Its firewall must allow it"
	err := wait.Condition{
		Name: "the kubelet to serve logs and commands", Interval: interval, MaxInterval: maxInterval,
		Limit: requestLimit,
		Look: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, execLimit)
			defer cancel()
			if _, err := w.Kubelets.PodLog(ctx, pod, container, 10, maxOutput); err != nil {
				return wait.StopIf(denied(err), &failure{"logs: " + shortened(err.Error(), maxText), hint})
			}
			program := request{system: system}.command()[0]
			result, err := w.Kubelets.Exec(ctx, pod, container, maxOutput, program, "--version")
			if over := w.over(ctx, pod); err != nil && over != nil {
				return wait.Stop(over)
			}
			switch {
			case err != nil:
				return wait.StopIf(denied(err), &failure{"exec: " + shortened(err.Error(), maxText),
					hint + ", and the image must have " + program})
			case result.Code != 0:
				return wait.Stop(&failure{fmt.Sprintf("exec: %s --version ended with exit code %d: %s", program, result.Code,
					firstLine(result.Stderr)), "the image must have " + program})
			}
			return nil
		},
	}.Wait(ctx)
	return late(ctx, err, "answered")
}

// firstLine returns the first line of a text that a node or a pod has sent, bounded and printable.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return shortened(strings.TrimSpace(line), maxText)
}

// shortened makes a text from outside of swdt printable, and cuts it after limit characters.
func shortened(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit]) + "…"
	}
	return ui.Printable(text)
}
