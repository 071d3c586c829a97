package trust_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/config/trust"
)

const nodeFile = `apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata: {name: win-1, labels: {rack: a}}
spec:
  credentials:
    hostname: win-1.example:2222
    username: Administrator
    hostKey: SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    passwordFrom: {env: NODE_PASSWORD}
    proxyJump: me@bastion
  setup:
    chocoPackages: [git]
    openSSH: {authorizedKeys: [./me.pub]}
  kubernetes:
    version: 1.36.3
    provisioners:
    - name: containerd
      sourceURL: https://user:s3cret@downloads.example/v1.7.12/containerd.exe?t=$TOKEN
      destination: C:\containerd\containerd.exe
    - name: kubelet
      version: 1.36.3
      sourceURL: ./kubelet.exe
      destination: C:\k\kubelet.exe
      build: {command: [make, kubelet], env: {GOFLAGS: -mod=mod}}
`

const throughPods = `apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata: {name: win-2}
spec:
  credentials:
    kubernetes: {node: win-2, kubeconfig: ./kubeconfig, context: c, namespace: tools, image: images.example/swdt:1}
`

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://api.example:6443", proxy-url: "http://proxy.example:3128"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {exec: {command: ./login.sh, apiVersion: client.authentication.k8s.io/v1}}}, {name: v, user: {tokenFile: ../.aws/credentials}}]
`

// claims writes files, and returns what the node file of them claims.
func claims(t *testing.T, folder, text string) ([]trust.Claim, error) {
	t.Helper()
	file := filepath.Join(folder, "swdt.yaml")
	write(t, file, text)
	nodes, clusters, err := config.LoadDocuments([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return trust.Claims(nodes, clusters)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func lines(claims []trust.Claim) (all []string) {
	for _, claim := range claims {
		all = append(all, claim.String())
	}
	slices.Sort(all)
	return all
}

func TestClaims(t *testing.T) {
	got, err := claims(t, t.TempDir(), nodeFile)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"credentials.hostKey of node win-1 is SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"credentials.hostname of node win-1 is win-1.example:2222",
		"credentials.passwordFrom.env of node win-1 is NODE_PASSWORD",
		"credentials.proxyJump of node win-1 is me@bastion",
		"credentials.username of node win-1 is Administrator",
		"kubernetes.provisioners[containerd].sourceURL of node win-1 is host user@downloads.example, $TOKEN",
		"kubernetes.provisioners[kubelet].build.command of node win-1 is make kubelet",
		"kubernetes.provisioners[kubelet].build.dir of node win-1 is .",
		"kubernetes.provisioners[kubelet].build.env.GOFLAGS of node win-1 is -mod=mod",
		"setup.openSSH.authorizedKeys[0] of node win-1 is ./me.pub",
	}
	if diff := cmp.Diff(want, lines(got)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// A kubeconfig leads to hosts, programs and files. Its bytes count, and those of a program beside it.
func TestClaimsOfAKubeconfig(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "kubeconfig"), kubeconfig)
	write(t, filepath.Join(folder, "login.sh"), "echo token")
	before, err := claims(t, folder, throughPods)
	if err != nil {
		t.Fatal(err)
	}
	field := "credentials.kubernetes.kubeconfig"
	for _, want := range []string{
		field + " of node win-2 is ./kubeconfig", field + " contacts of node win-2 is https://api.example:6443, http://proxy.example:3128",
		field + " runs of node win-2 is ./login.sh", field + " sends of node win-2 is ../.aws/credentials",
		"credentials.kubernetes.image of node win-2 is images.example/swdt:1",
		"credentials.kubernetes.namespace of node win-2 is tools",
	} {
		if !slices.Contains(lines(before), want) {
			t.Errorf("no claim %q in\n%s", want, strings.Join(lines(before), "\n"))
		}
	}
	for file, text := range map[string]string{"login.sh": "echo another", "kubeconfig": kubeconfig + "# another\n"} {
		write(t, filepath.Join(folder, file), text)
		after, err := claims(t, folder, throughPods)
		if changes := trust.Changes(before, after); err != nil || len(changes) != 1 || !strings.Contains(changes[0], "content") {
			t.Errorf("after a change of %s: %q, %v", file, changes, err)
		}
		before = after
	}
	if err := os.Remove(filepath.Join(folder, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	after, err := claims(t, folder, throughPods)
	if err != nil || !slices.Contains(lines(after), field+" content of node win-2 is not there") {
		t.Errorf("without the kubeconfig: %q, %v", lines(after), err)
	}
}

// A change of what gives authority is a change of claims, and another is not.
func TestChangesThatCount(t *testing.T) {
	folder := t.TempDir()
	before, err := claims(t, folder, nodeFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		old, new string
		want     string // of the change; empty: none
	}{
		"a version":              {"version: 1.36.3", "version: 1.36.4", ""},
		"a local path":           {"./kubelet.exe", "./out/kubelet.exe", ""},
		"a label":                {"rack: a", "rack: b", ""},
		"a package on the node":  {"[git]", "[git, vim]", ""},
		"a path of a URL":        {"v1.7.12", "v1.7.13", ""},
		"a destination":          {`C:\k\kubelet.exe`, `C:\kube\kubelet.exe`, ""},
		"the host":               {"win-1.example", "evil.example", "credentials.hostname of node win-1 is evil.example:2222, and was win-1.example:2222"},
		"the host key":           {"SHA256:AAA", "SHA256:BAA", "credentials.hostKey"},
		"no host key":            {"    hostKey: SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n", "", "credentials.hostKey of node win-1 is gone"},
		"the user":               {"Administrator", "root", "credentials.username"},
		"the secret's variable":  {"NODE_PASSWORD", "GITHUB_TOKEN", "credentials.passwordFrom.env"},
		"the secret's file":      {"{env: NODE_PASSWORD}", "{file: ~/.aws/credentials}", "credentials.passwordFrom.file"},
		"the host on the way":    {"me@bastion", "me@evil", "credentials.proxyJump"},
		"who may log in":         {"./me.pub", "./evil.pub", "setup.openSSH.authorizedKeys"},
		"the host of a URL":      {"downloads.example", "evil.example", "provisioners[containerd].sourceURL"},
		"a variable of a URL":    {"$TOKEN", "$GITHUB_TOKEN", "$GITHUB_TOKEN"},
		"a URL for a path":       {"./kubelet.exe", "oci://evil.example/kubelet:1", "host evil.example, which is new"},
		"a share of Windows":     {"./kubelet.exe", `\\evil.example\share\kubelet.exe`, "host evil.example, which is new"},
		"a variable as scheme":   {"https://", "${SCHEME}://", "${SCHEME}"},
		"the command of a build": {"[make, kubelet]", "[./evil.sh]", "build.command"},
		"a variable of a build":  {"-mod=mod", "-toolexec=./evil", "build.env.GOFLAGS"},
		"the folder of a build":  {"build: {", "build: {dir: ../x, ", "build.dir"},
		"the name of the node":   {"name: win-1,", "name: win-9,", "node win-9"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(nodeFile, c.old, c.new, 1)
			if text == nodeFile {
				t.Fatalf("the node file has no %q", c.old)
			}
			if strings.Contains(c.new, "oci:") { // a build makes a file of this machine
				text = strings.Replace(text, "      build: {command: [make, kubelet], env: {GOFLAGS: -mod=mod}}\n", "", 1)
			}
			after, err := claims(t, folder, text)
			if err != nil {
				t.Fatal(err)
			}
			changes := strings.Join(trust.Changes(before, after), "\n")
			if c.want == "" && changes != "" || !strings.Contains(changes, c.want) {
				t.Errorf("changes %q, want %q", changes, c.want)
			}
		})
	}
}

// Each entry of the lists is a field of a node file or a cluster's document, so none is misspelt.
func TestListsNameFields(t *testing.T) {
	var fields []string
	for _, document := range []any{v1alpha1.Node{}, v1alpha1.Cluster{}} {
		fields = append(fields, fieldsOf(reflect.TypeOf(document), "")...)
	}
	for _, listed := range trust.Lists() {
		if !slices.Contains(fields, listed) {
			t.Errorf("%s is no field", listed)
		}
	}
}

func fieldsOf(t reflect.Type, path string) (all []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name == "" {
			continue
		}
		field := strings.TrimPrefix(path+"."+name, ".")
		all = append(append(all, field), fieldsOf(t.Field(i).Type, field)...)
	}
	return all
}

// A password in the node file is neither shown nor recorded.
func TestSecretsAreNotRecorded(t *testing.T) {
	text := strings.Replace(nodeFile, "passwordFrom: {env: NODE_PASSWORD}", "password: hunter2-in-the-file", 1)
	got, err := claims(t, t.TempDir(), text)
	if all := strings.Join(lines(got), "\n"); err != nil || strings.Contains(all, "hunter2") || strings.Contains(all, "s3cret") ||
		!strings.Contains(all, "credentials.password of node win-1 is in the file") {
		t.Errorf("%v, %s", err, all)
	}
}

// newHome gives the user an empty home folder.
func newHome(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(name, home)
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, "")
	}
}

// A file that was trusted before XDG_CONFIG_HOME was set is still trusted, and is not after Forget.
func TestARecordOfTheOldFolder(t *testing.T) {
	newHome(t)
	older, err := trust.UserStore()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "swdt.yaml")
	if _, err := older.Trust(file, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	store, err := trust.UserStore()
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := store.Of(file); !found || err != nil {
		t.Errorf("it is lost: %v", err)
	}
	newer, err := store.Trust(file, []trust.Claim{{Document: "node win-1", Field: "x", Value: "y"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "swdt", "trusted")); len(entries) != 1 {
		t.Errorf("the new folder has %d records, %v", len(entries), err)
	}
	records, err := store.Records()
	if diff := cmp.Diff([]trust.Record{newer}, records); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, found, err := store.Forget(file); !found || err != nil {
		t.Errorf("forget: %v, %v", found, err)
	}
	if _, found, err := store.Of(file); found || err != nil {
		t.Errorf("after Forget: %v, %v", found, err)
	}
}

func TestStore(t *testing.T) {
	newHome(t)
	store, err := trust.UserStore()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "swdt.yaml")
	all, err := claims(t, folder, nodeFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := store.Of(file); found || err != nil {
		t.Fatalf("before: %v, %v", found, err)
	}
	kept, err := store.Trust(file, all, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	record, found, err := store.Of(file)
	if diff := cmp.Diff(kept, record); !found || err != nil || diff != "" {
		t.Errorf("after: %v, %v (-kept +read):\n%s", found, err, diff)
	}
	if changes := trust.Changes(record.Claims, all); len(changes) > 0 {
		t.Errorf("what is read differs from what was recorded: %q", changes)
	}
	records, err := store.Records()
	if err != nil || len(records) != 1 {
		t.Errorf("%d records, %v", len(records), err)
	}
	if _, found, err := store.Of(filepath.Join(folder, "another.yaml")); found || err != nil {
		t.Errorf("another file: %v, %v", found, err)
	}
	if forgotten, found, err := store.Forget(file); !found || err != nil || forgotten.File != kept.File {
		t.Errorf("forget: %+v, %v, %v", forgotten, found, err)
	}
	if _, found, err := store.Forget(file); found || err != nil {
		t.Errorf("forget again: %v, %v", found, err)
	}
}
