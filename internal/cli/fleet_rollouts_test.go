package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

const rolloutJSON = `{"apiVersion":"fleet.swdt.dev/v1alpha1","kind":"NodeRollout",
 "metadata":{"name":"kubelet","generation":%d},
 "spec":{"selector":{},"content":{"provisioners":[]},"paused":%t},
 "status":{"observedGeneration":1,"hash":"0123456789abcdef","nodes":5,"updated":2,"working":1,"failed":%d,
  "rolledBack":0,"unavailable":0,"state":"Stopped","message":"1 of 5 nodes failed"}}`

const statesJSON = `{"apiVersion":"fleet.swdt.dev/v1alpha1","kind":"NodeStateList","metadata":{},"items":[
 {"metadata":{"name":"w1"},"spec":{"rollout":"kubelet","hash":"0123456789abcdef","action":"Apply","released":true,
  "content":{},"verdict":"Failed","reason":"kubelet exited with 1"}},
 {"metadata":{"name":"w0"},"spec":{"rollout":"kubelet","hash":"0123456789abcdef","action":"Apply","released":true,
  "content":{}},"status":{"hash":"0123456789abcdef","action":"Apply","phase":"Working","journal":"j1"}},
 {"metadata":{"name":"w2"},"spec":{"rollout":"another","hash":"0123456789abcdef","action":"Apply","content":{}}}]}`

// rolloutServer answers as an API server with one rollout does. The writes are in patches.
type rolloutServer struct {
	failed  int
	refuses string            // the method that it refuses
	unwatch bool              // refuses watches
	as      *strings.Replacer // changes the rollout; nil: it is rolloutJSON
	patches []string
}

func (s *rolloutServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == s.refuses:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case r.Method == http.MethodPatch:
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body) // a test that needs the body fails without it
		s.patches = append(s.patches, body.String())
		fmt.Fprint(w, s.rollout(2, strings.Contains(body.String(), `"paused":true`)))
	case strings.HasSuffix(r.URL.Path, "/nodestates"):
		fmt.Fprint(w, statesJSON)
	default:
		fmt.Fprintf(w, `{"apiVersion":"fleet.swdt.dev/v1alpha1","kind":"NodeRolloutList","metadata":{},"items":[%s]}`,
			s.rollout(1, false))
	}
}

// rollout returns the rollout as JSON.
func (s *rolloutServer) rollout(generation int, paused bool) string {
	text := fmt.Sprintf(rolloutJSON, generation, paused, s.failed)
	if s.as != nil {
		return s.as.Replace(text)
	}
	return text
}

// watch answers a watch: its node has ended since the list.
func (s *rolloutServer) watch(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.unwatch:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		return
	case r.URL.Query().Get("sendInitialEvents") != "": // as an older API server, which the client lists then
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		return
	case strings.HasSuffix(r.URL.Path, "/noderollouts"):
		ended := strings.ReplaceAll(s.rollout(1, false), `"working":1`, `"working":0`)
		fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", ended)
	}
	_ = http.NewResponseController(w).Flush() // the client sees a broken stream if it fails
	<-r.Context().Done()
}

// run runs swdt fleet with this API server.
func (s *rolloutServer) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	defer server.CloseClientConnections()
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\n"+
		"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\ncurrent-context: c\n",
		server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), ui.Streams{Out: &out, Err: &errs},
		append(append([]string{"fleet"}, args...), "--kubeconfig", config), cli.Environment{})
	return code, out.String(), errs.String()
}

// rolloutsFit returns a test that a command on a rollout prints its schema.
func rolloutsFit(command string) func(*testing.T) {
	return func(t *testing.T) {
		_, stdout, stderr := (&rolloutServer{}).run(t, command, "kubelet", "-o", "json")
		schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemas, "fleet-"+command+".json"))
		if err != nil {
			t.Fatal(err)
		}
		want := 1
		if command == "watch" {
			want = 2 // at first, and when the node has ended
		}
		if n, err := documentsThatFit(schema, stdout); err != nil || n != want {
			t.Errorf("%d documents: %v:\n%s%s", n, err, stdout, stderr)
		}
	}
}

func TestFleetStatusNamesTheFailedNodes(t *testing.T) {
	code, stdout, stderr := (&rolloutServer{failed: 1}).run(t, "status")
	if code != 5 {
		t.Errorf("exit code %d, want 5: %s", code, stderr)
	}
	for _, line := range []string{"kubelet 5 2 1 1 Stopped 1 of 5 nodes failed", "w1 kubelet failed kubelet exited with 1",
		"w0 kubelet working"} {
		if !strings.Contains(strings.Join(strings.Fields(stdout), " "), line) {
			t.Errorf("the output lacks %q:\n%s", line, stdout)
		}
	}
	if strings.Contains(stdout, "w2") {
		t.Errorf("the output has the node of another rollout:\n%s", stdout)
	}
	code, _, stderr = (&rolloutServer{}).run(t, "status", "kubelt")
	if code != 1 || !strings.Contains(stderr, "there is no rollout kubelt") {
		t.Errorf("an unknown name: exit code %d: %s", code, stderr)
	}
}

func TestFleetWatchEndsWithTheRollout(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		state        string
		failed, want int
	}{{"Aborted", 0, 0}, {"Aborted", 1, 5}, {"Stopped", 0, 5}} {
		failed := test.failed
		code, stdout, stderr := (&rolloutServer{failed: failed, as: strings.NewReplacer("Stopped", test.state)}).run(t, "watch")
		if code != test.want {
			t.Errorf("%s, %d failed nodes: exit code %d, want %d: %s", test.state, failed, code, test.want, stderr)
		}
		for _, text := range []string{"kubelet w1 failed: kubelet exited with 1\n", "kubelet w0 working\n",
			"2 of 5 nodes updated, 1 working", "1 of 5 nodes failed\n"} {
			if !strings.Contains(stdout, text) {
				t.Errorf("%d failed nodes: the output lacks %q:\n%s", failed, text, stdout)
			}
		}
	}
	code, _, stderr := (&rolloutServer{unwatch: true}).run(t, "watch", "--timeout", "1m")
	if code != 3 || !strings.Contains(stderr, "watch node") {
		t.Errorf("a refused watch: exit code %d: %s", code, stderr)
	}
	code, _, stderr = (&rolloutServer{}).run(t, "watch", "kubelt")
	if code != 1 || !strings.Contains(stderr, "there is no rollout kubelt") {
		t.Errorf("an unknown name: exit code %d: %s", code, stderr)
	}
}

func TestFleetOrdersChangeTheSpec(t *testing.T) {
	for command, want := range map[string]map[string]any{
		"pause":    {"paused": true},
		"resume":   {"paused": false, "operation": "Roll"},
		"abort":    {"operation": "Abort"},
		"rollback": {"paused": false, "operation": "RollBack"},
	} {
		s := &rolloutServer{}
		code, _, stderr := s.run(t, command, "kubelet")
		if code != 0 || len(s.patches) != 1 {
			t.Errorf("%s: exit code %d, %d writes: %s", command, code, len(s.patches), stderr)
			continue
		}
		text, err := json.Marshal(map[string]any{"spec": want})
		if err != nil {
			t.Fatal(err)
		}
		if s.patches[0] != string(text) {
			t.Errorf("%s writes %s, want %s", command, s.patches[0], text)
		}
	}
}

// A rollout that deploys nothing because of a wrong field is a finding, although no node has failed.
func TestAnInvalidRolloutIsAFinding(t *testing.T) {
	const message = "spec.window.timeZone: unknown time zone Europe/Nowhere"
	s := &rolloutServer{as: strings.NewReplacer("1 of 5 nodes failed", message, `"state":`, `"conditions":[{"type":"Valid",`+
		`"status":"False","reason":"WrongField","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}],"state":`)}
	for _, command := range []string{"status", "watch"} {
		code, stdout, stderr := s.run(t, command, "kubelet")
		if code != 5 || !strings.Contains(stdout, message) {
			t.Errorf("%s: exit code %d: %s%s", command, code, stdout, stderr)
		}
	}
}

// With onFailure: pause, resume accepts the failures so far.
func TestFleetResumeAcceptsFailures(t *testing.T) {
	const accepted = `"acceptedFailures":{"hash":"0123456789abcdef","nodes":1}`
	for onFailure, want := range map[string]bool{"pause": true, "rollback": false} {
		s := &rolloutServer{failed: 1, as: strings.NewReplacer(`"selector":{}`, `"selector":{},"onFailure":"`+onFailure+`"`)}
		code, _, stderr := s.run(t, "resume", "kubelet")
		if code != 0 || len(s.patches) != 1 || strings.Contains(s.patches[0], accepted) != want {
			t.Errorf("%s: exit code %d, the writes are %q: %s", onFailure, code, s.patches, stderr)
		}
	}
}

// A rollback of a rollout that is RolledBack with failed nodes is another order, which tries these nodes again.
func TestASecondFleetRollbackIsAnotherOrder(t *testing.T) {
	s := &rolloutServer{failed: 1, as: strings.NewReplacer(`"Stopped"`, `"RolledBack"`, `"selector":{}`,
		`"selector":{},"operation":"RollBack"`)}
	code, _, stderr := s.run(t, "rollback", "kubelet")
	want := []string{`{"spec":{"operation":"Abort"}}`, `{"spec":{"operation":"RollBack","paused":false}}`}
	if code != 0 || !slices.Equal(s.patches, want) {
		t.Errorf("exit code %d, the writes are %q: %s", code, s.patches, stderr)
	}
}

func TestFleetNamesTheMissingPermission(t *testing.T) {
	for command, refused := range map[string]struct{ method, permission string }{
		"status": {http.MethodGet, "list noderollouts.fleet.swdt.dev"},
		"pause":  {http.MethodPatch, "patch noderollouts.fleet.swdt.dev/kubelet"},
	} {
		code, _, stderr := (&rolloutServer{refuses: refused.method}).run(t, command, "kubelet")
		if code != 3 || !strings.Contains(stderr, refused.permission) {
			t.Errorf("%s: exit code %d: %s", command, code, stderr)
		}
	}
}
