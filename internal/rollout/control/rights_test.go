package control_test

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
)

// attempt is a request that the holder of a token might try.
type attempt struct {
	verb, resource   string // such as create and pods/eviction
	group, namespace string
	name             string // "": the request names no object
	method, path     string
	body             string
}

func (a attempt) String() string { return fmt.Sprintf("%s %s %s", a.verb, a.method, a.path) }

// attempts returns a request for each verb of each resource and subresource that the API server has, for the
// objects with the names of two nodes, in each namespace that matters.
func (l *lab) attempts(t *testing.T) (all []attempt) {
	t.Helper()
	_, lists, err := l.client().Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		for _, kind := range list.APIResources {
			all = append(all, attemptsOf(list.GroupVersion, kind)...)
		}
	}
	return all
}

func attemptsOf(version string, kind metav1.APIResource) (all []attempt) {
	base := "/apis/" + version
	group, _, named := strings.Cut(version, "/")
	if !named {
		base, group = "/api/"+version, ""
	}
	resource, sub, _ := strings.Cut(kind.Name, "/")
	folders := map[string]string{"": base + "/" + resource}
	if kind.Namespaced {
		folders = map[string]string{}
		for _, namespace := range []string{"default", "kube-system", "kube-node-lease", manifests.Namespace} {
			folders[namespace] = base + "/namespaces/" + namespace + "/" + resource
		}
	}
	for namespace, folder := range folders {
		for _, verb := range kind.Verbs {
			names := []string{"w0", "w1"}
			if kind.Namespaced {
				names = append(names, "swdt-controller")
			}
			if sub == "" && slices.Contains([]string{"list", "watch", "create", "deletecollection"}, verb) {
				names = []string{""}
			}
			for _, name := range names {
				a := attempt{verb: verb, resource: kind.Name, group: group, namespace: namespace, name: name, path: folder + "/" + name}
				if sub != "" {
					a.path += "/" + sub
				}
				a.method, a.path, a.body = a.request(folder, sub)
				all = append(all, a)
			}
		}
	}
	return all
}

// request returns the HTTP request of a verb. It stores nothing if it is allowed.
func (a attempt) request(folder, sub string) (method, path, body string) {
	const dry = "?dryRun=All"
	switch a.verb {
	case "get":
		return http.MethodGet, a.path, ""
	case "list":
		return http.MethodGet, folder, ""
	case "watch":
		return http.MethodGet, folder + "?watch=1&timeoutSeconds=1", ""
	case "create":
		if sub == "" {
			return http.MethodPost, folder + dry, "{}"
		}
		return http.MethodPost, a.path + dry, "{}"
	case "update":
		return http.MethodPut, a.path + dry, "{}"
	case "patch":
		return http.MethodPatch, a.path + dry, `{"status":{"message":"tried"}}`
	case "delete":
		return http.MethodDelete, a.path + dry, ""
	case "deletecollection":
		return http.MethodDelete, folder + dry, ""
	}
	return http.MethodPost, a.path, "" // a verb that this test does not know fails it, unless it is refused
}

// outcome is the API server's answer to an attempt.
type outcome int

const (
	refused  outcome = iota // by the rules
	declined                // by an admission policy
	allowed
)

// right allows an account some verbs of a resource.
type right struct {
	verbs           string // separated by spaces
	group, resource string
	namespace       string // "": each one
	name            string // "": each one
}

// nodeMay and controllerMay are all rights of the two accounts. A rule of the manifests that is wider fails the tests.
func nodeMay() []right {
	return []right{
		{"get list watch", fleetv1.Group, "nodestates", "", ""},
		{"patch", fleetv1.Group, "nodestates/status", "", ""},
		{"get", fleetv1.Group, "noderollouts", "", ""},
		{"get", "", "nodes", "", ""},
		{"get", "", "configmaps", "kube-system", "swdt-kube-proxy"},
	}
}

func controllerMay() []right {
	return []right{
		{"get list watch", fleetv1.Group, "noderollouts", "", ""},
		{"patch", fleetv1.Group, "noderollouts/status", "", ""},
		{"get list watch create patch", fleetv1.Group, "nodestates", "", ""},
		{"get list watch patch", "", "nodes", "", ""},
		{"get list", "", "pods", "", ""},
		{"create", "", "pods/eviction", "", ""},
		{"get", "apps", "daemonsets", "", ""},
		{"get", "coordination.k8s.io", "leases", "kube-node-lease", ""},
		{"get update", "coordination.k8s.io", "leases", manifests.Namespace, "swdt-controller"},
		{"create", "coordination.k8s.io", "leases", manifests.Namespace, ""},
		{"create patch", "", "events", manifests.Namespace, ""},
		{"create patch", "events.k8s.io", "events", manifests.Namespace, ""},
	}
}

// thief is a holder of a stolen token.
type thief struct {
	access *rest.Config
	may    []right
	own    string // the node of its pod; "": none
}

// wanted returns the outcome that the rights give.
func (h thief) wanted(a attempt) outcome {
	if a.verb == "create" && strings.HasPrefix(a.resource, "selfsubject") { // each account may ask about itself
		return allowed
	}
	for _, r := range h.may {
		if slices.Contains(strings.Fields(r.verbs), a.verb) && r.group == a.group && r.resource == a.resource &&
			slices.Contains([]string{"", a.namespace}, r.namespace) && slices.Contains([]string{"", a.name}, r.name) {
			if a.resource == "nodestates/status" && a.name != h.own {
				return declined
			}
			return allowed
		}
	}
	return refused
}

// try makes the request, and returns its outcome.
func (a attempt) try(ctx context.Context, client *http.Client, server string) (outcome, int, error) {
	request, err := http.NewRequestWithContext(ctx, a.method, server+a.path, bytes.NewReader([]byte(a.body)))
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if a.method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, 0, err
	}
	var status metav1.Status
	switch {
	case response.StatusCode == http.StatusForbidden:
		return refused, response.StatusCode, nil
	case response.StatusCode == http.StatusUnauthorized:
		return 0, response.StatusCode, errors.New("the token is not accepted")
	case response.StatusCode == http.StatusUnprocessableEntity && json.Unmarshal(answer, &status) == nil &&
		byPolicy(status.Details):
		return declined, response.StatusCode, nil
	}
	return allowed, response.StatusCode, nil
}

// byPolicy reports whether a refusal is that of a ValidatingAdmissionPolicy: its cause names neither a kind of
// mistake nor a field, as those of the schema and of validation do.
func byPolicy(details *metav1.StatusDetails) bool {
	return details != nil && slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == "" && c.Field == "" && c.Message != ""
	})
}

// testRights tries a stolen token against every verb of every resource and subresource. It gets what its rights say,
// and is refused everything else.
func (l *lab) testRights(t *testing.T, h thief) {
	t.Helper()
	client, err := rest.HTTPClientFor(h.access)
	if err != nil {
		t.Fatal(err)
	}
	all := l.attempts(t)
	var counts [allowed + 1]atomic.Int32
	err = forEach(t.Context(), all, func(ctx context.Context, a attempt) error {
		got, status, err := a.try(ctx, client, h.access.Host)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		counts[got].Add(1)
		if want := h.wanted(a); got != want {
			t.Errorf("%s: the status is %d, outcome %d; want %d", a, status, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests: %d refused by the rules, %d by a policy, %d allowed", len(all), counts[refused].Load(),
		counts[declined].Load(), counts[allowed].Load())
	if len(all) < 1000 {
		t.Errorf("only %d requests were tried", len(all))
	}
	l.testRules(t, h)
	l.otherPaths(t, client, h.access.Host)
}

// testRules compares the rules that the API server has for the token with its rights. That also finds verbs which no
// request has, such as impersonate, bind and escalate.
func (l *lab) testRules(t *testing.T, h thief) {
	t.Helper()
	for _, namespace := range []string{"default", "kube-system", "kube-node-lease", manifests.Namespace} {
		got, want := l.rules(t, h.access, namespace), l.rules(t, l.account("default", ""), namespace)
		for _, r := range h.may {
			if r.namespace == "" || r.namespace == namespace {
				for _, verb := range strings.Fields(r.verbs) {
					want[rule(verb, r.group, r.resource, r.name)] = true
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the rules in %s differ from the rights (-rights +rules):\n%s", namespace, diff)
		}
	}
}

func rule(verb, group, resource, name string) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", verb, stdcmp.Or(group, "core"), resource, name))
}

// rules returns what the token may do in a namespace, one line for each verb.
func (l *lab) rules(t *testing.T, access *rest.Config, namespace string) map[string]bool {
	t.Helper()
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, r := range review.Status.ResourceRules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range r.Verbs {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, name := range names {
						all[rule(verb, group, resource, name)] = true
					}
				}
			}
		}
	}
	for _, r := range review.Status.NonResourceRules {
		all[fmt.Sprint(r.Verbs, r.NonResourceURLs)] = true
	}
	return all
}

// otherPaths tries what discovery does not list: paths without resources, and another user's name.
func (l *lab) otherPaths(t *testing.T, client *http.Client, server string) {
	t.Helper()
	for _, path := range []string{"/metrics", "/logs", "/configz", "/debug/pprof/", "/debug/flags/v", "/flagz", "/statusz"} {
		a := attempt{method: http.MethodGet, path: path}
		if got, status, err := a.try(t.Context(), client, server); err != nil || got != refused {
			t.Errorf("%s: the status is %d, %v", path, status, err)
		}
	}
	for _, header := range []string{"Impersonate-User", "Impersonate-Group", "Impersonate-Uid"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+"/api/v1/nodes", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Impersonate-User", programUser)
		request.Header.Set(header, "system:masters")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: the status is %d", header, response.StatusCode)
		}
	}
}
