package redact

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// secret is a secret, and a text that contains it.
type secret struct{ name, value, text string }

const keyBody = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n" +
	"MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu\n" +
	"NMoSfm76oqFvAp8Gy0iz5sxjZmSnXyCdPEovGhLa0VzMaQ8s+CLOyS56YyCFGeJZ"

// secrets returns one of each kind. None of them is in use.
func secrets() []secret {
	pem := "-----BEGIN PRIVATE KEY-----\n" + keyBody + "\nagtr3A==\n-----END PRIVATE KEY-----\n"
	encoded := base64.StdEncoding.EncodeToString([]byte(pem))
	jwt := "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0.c2lnbmF0dXJlLW9mLXRoaXM"
	return []secret{
		{"pem", "NMoSfm76oqFvAp8Gy0iz5sxjZmSnXyCdPEovGhLa0VzMaQ8s", "before\n" + pem + "after\n"},
		{"pem, last line", "agtr3A==", "before\r\n" + strings.ReplaceAll(pem, "\n", "\r\n") + "after\r\n"},
		{"pem in json", "VMvDuictGeurT8jNbvJZHtCSuYEvu", `{"key":"` + strings.ReplaceAll(pem, "\n", `\n`) + `","x":1}`},
		{"pem in a container's log", "MzEfYyjiWA4R4", "2026-11-20T14:29:59.1Z stdout F " +
			strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\n2026-11-20T14:29:59.1Z stdout F ") + "\n"},
		{"middle of a pem", "MzEfYyjiWA4R4", keyBody[65:] + "\n-----END PRIVATE KEY-----\n"},
		{"kubeconfig", encoded[:40], "users:\n- user:\n    client-key-data: " + encoded + "\n"},
		{"base64 of a key", encoded[20:60], "data " + encoded + " end\n"},
		{"jwt", "c2lnbmF0dXJlLW9mLXRoaXM", "token is " + jwt + ", said he\n"},
		{"jwt of a Secret", base64.StdEncoding.EncodeToString([]byte(jwt))[20:50],
			"x " + base64.StdEncoding.EncodeToString([]byte(jwt)) + "\n"},
		{"bearer", "Zx81mQ0pL2", `curl -H "Authorization: Bearer Zx81mQ0pL2" https://x` + "\n"},
		{"bearer in Go", "Zx81mQ0pL2", "Header:map[Authorization:[Bearer Zx81mQ0pL2]]\n"},
		{"basic", "dXNlcjpodW50ZXIy", "Authorization: Basic dXNlcjpodW50ZXIy\r\n"},
		{"bootstrap token", "x7h2k9q1m4z8w3y6", "kubeadm join 10.0.0.1:6443 --token abcdef.x7h2k9q1m4z8w3y6 --x\n"},
		{"bootstrap token alone", "x7h2k9q1m4z8w3y6", "using abcdef.x7h2k9q1m4z8w3y6.\n"},
		{"yaml", "correct horse", "db:\n  password: correct horse\n"},
		{"yaml block", "line-two-of-it",
			"stringData:\n  password: |\n    line-one\n    line-two-of-it\nkind: Secret\n"},
		{"json", "hun\\\"ter2", `{"user":"x","password":"hun\"ter2","n":1}` + "\n"},
		{"json in json", "hunter2hunter", `{"msg":"{\"password\":\"hunter2hunter\",\"a\":1}"}` + "\n"},
		{"toml", "hunter2", "[auth]\n  password = \"hunter2\"\n"},
		{"ini", "hunter2", "DB_PASSWORD=hunter2\r\n"},
		{"option", "hunter2", "run --password hunter2 --user me\n"},
		{"option with =", "hunter2", `C:\x.exe --db-password=hunter2 --user me` + "\n"},
		{"option in a list", "hunter2", `["--token","hunter2","-v"]` + "\n"},
		{"option in a list, lines", "hunter2", "  \"args\": [\n    \"--token\",\n    \"hunter2\",\n    \"-v\"\n  ]\n"},
		{"option in a list of YAML", "hunter2", "args:\n- --db-password\n- hunter2\n- -v\n"},
		{"option in a list of YAML, quoted", "hunter2", "args:\n  - '--token'\n  - \"hunter2\"\n"},
		{"number in json", "4711", `{"password":4711,"n":1}` + "\n"},
		{"PowerShell", "hunter2", "Connect -Password 'hunter2'\n"},
		{"PowerShell's list", "hunter2", "UserName : me\nPassword : hunter2\n"},
		{"name and value", "hunter2", `{"name":"DB_PASSWORD","value":"hunter2"}` + "\n"},
		{"name and value, lines", "hunter2", "env:\n- name: DB_PASSWORD\n  value: hunter2\n"},
		{"xml", "hunter2", "<password>hunter2</password>\n"},
		{"an event's data", "hunter 2", "<Data Name='Password'>hunter 2</Data>\n"},
		{"an event's message", "hunter2", "<Message>{&quot;password&quot;:&quot;hunter2&quot;}</Message>\n"},
		{"reg.exe", "hunter 2", "    DbPassword    REG_SZ    hunter 2\r\n"},
		{".reg", "hunter2", "\"DbPassword\"=\"hunter2\"\r\n"},
		{"connection string", "hunter2", "Server=tcp:db,1433;User ID=sa;Password=hunter2;Encrypt=True\n"},
		{"Azure storage", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq",
			"AccountName=x;" +
				"AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;" +
				"EndpointSuffix=core\n"},
		{"Azure SAS", "abc%2Bdef%3D", "https://x.blob.core.windows.net/c?sv=2022&sig=abc%2Bdef%3D&se=1\n"},
		{"Azure application", "abc8Q~abcdefghijklmnopqrstuvwxyz0123456",
			"the secret abc8Q~abcdefghijklmnopqrstuvwxyz0123456 \n"},
		{"AWS id", "AKIAIOSFODNN7EXAMPLE", "id AKIAIOSFODNN7EXAMPLE\n"},
		{"AWS secret", "wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n"},
		{"GitHub", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "clone with ghp_abcdefghijklmnopqrstuvwxyz0123456789\n"},
		{"docker", "dXNlcjpodW50ZXIy", `{"auths":{"r.io":{"auth":"dXNlcjpodW50ZXIy"}}}` + "\n"},
		{"url", "hunter2", "https://user:hunter2@example.com/x\n"},
		{"curl", "hunter2", "curl -u admin:hunter2 http://x\n"},
		{"kubeadm", "9a08jv", "kubeadm join --certificate-key 9a08jvc0gr\n"},
		{"environment of a container", "hunter2", `{"config":{"envs":[{"key":"DB_PASSWORD","value":"hunter2"}]}}` +
			"\n"},
		{"environment of a process", "hunter2", `{"env":["PATH=C:\\x","DB_PASSWORD=hunter2"]}` + "\n"},
		{"pattern", "Project-Bluebird", "a log of Project-Bluebird.\n"},
		{"pattern in a word", "cust-4711-x", "id=cust-4711-x;\n"},
		{"pattern in a secret's name", "cust-4711", `{"name":"cust-4711_PASSWORD","value":"${X}"}` + "\n"},
		{"pattern in the name of an event's data", "cust-4711", "<Data Name='cust-4711_PASSWORD'>hunter2</Data>\n"},
		{"pattern that begins with a star", "db.bluebird.example", "host db.bluebird.example:443\n"},
	}
}

func tested(t testing.TB) *Redactor {
	t.Helper()
	r, err := New([]string{"project-bluebird", "cust-*", "*.bluebird.example"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEverySecretGoes(t *testing.T) {
	r := tested(t)
	for _, s := range secrets() {
		got := r.String(s.text)
		if strings.Contains(got, s.value) {
			t.Errorf("%s: %q is left in\n%s", s.name, s.value, got)
		}
		if !strings.Contains(got, Mark) {
			t.Errorf("%s: nothing says that something was taken out:\n%s", s.name, got)
		}
		if again := r.String(got); again != got {
			t.Errorf("%s: redacting again changes it:\n%s\n%s", s.name, got, again)
		}
	}
}

// The text around a secret stays.
func TestTheRestStays(t *testing.T) {
	r := tested(t)
	for text, want := range map[string]string{
		`{"user":"x","password":"a b","n":1}`: `{"user":"x","password":"REDACTED","n":1}`,
		"Server=db;User ID=sa;Password=x1;Encrypt=True": "Server=db;User " +
			"ID=sa;Password=REDACTED;Encrypt=True",
		"https://user:hunter2@example.com/x":              "https://user:REDACTED@example.com/x",
		"  token: abc.def\n  mode: x\n":                   "  token: REDACTED\n  mode: x\n",
		"Authorization: Bearer abc1234567\r\nHost: x\r\n": "Authorization: Bearer REDACTED\r\nHost: x\r\n",
		"a=1 password='x y' b=2":                          "a=1 password='REDACTED' b=2",
		"<a><password>x1</password><b>1</b></a>":          "<a><password>REDACTED</password><b>1</b></a>",
		"x --password hunter2 --verbose":                  "x --password REDACTED --verbose",
		"https://h/?token=abc&x=1":                        "https://h/?token=REDACTED&x=1",
		"password: |\n  a\n  b\nuser: c\n":                "password: |\n  REDACTED\n  REDACTED\nuser: c\n",
		`{"name":"DB_PASSWORD","value":"a"},{"name":"X","value":"b"}`: `{"name":"DB_PASSWORD","value":"REDACTED"},` +
			`{"name":"X","value":"b"}`,
		`{"password":4711,"n":1}`:    `{"password":"REDACTED","n":1}`,
		`["--token","hunter2","-v"]`: `["--token","REDACTED","-v"]`,
		"[\n  \"--token\",\n  \"hunter2\",\n  \"-v\"\n]\n": "[\n  \"--token\",\n  \"REDACTED\",\n  " +
			"\"-v\"\n]\n",
		"[\n  \"--token=hunter 2\",\n  \"-v\"\n]\n": "[\n  \"--token=REDACTED\",\n  \"-v\"\n]\n",
		`{"x":"[\"A_TOKEN=hunter 2\",\"B=1\"]"}`:    `{"x":"[\"A_TOKEN=REDACTED\",\"B=1\"]"}`,
		`msg="token: signature is invalid" n=1`:     `msg="token: signature is invalid" n=1`,
		"- --token\n- hunter2\n- -v\n":              "- --token\n- REDACTED\n- -v\n",
		`{"a":"cust-1","b":"{\"c\":\"cust-2\"}","d":"cust-3 4"}`: `{"a":"REDACTED","b":"{\"c\":\"REDACTED\"}",` +
			`"d":"REDACTED 4"}`,
		"a.bluebird.example b.bluebird.example:1 bluebird.example\n": "REDACTED REDACTED:1 bluebird.example\n",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q\nbecame %q\nwant   %q", text, got, want)
		}
	}
}

// Ordinary text of logs and configurations is not changed.
func TestOrdinaryTextPasses(t *testing.T) {
	r, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(ordinary) {
		if isBody([]byte(strings.TrimSpace(line))) {
			continue // of a certificate, which only the previous line shows
		}
		if got := r.String(line); got != line {
			t.Errorf("%q\nbecame %q", line, got)
		}
	}
	if got := r.String(ordinary); got != ordinary {
		t.Errorf("as one text it became\n%s", got)
	}
}

const ordinary = `I1120 14:29:59.123456    4711 kubelet.go:2345] "SyncLoop ADD" source="api"` +
	` pods=["default/web-6d4cf56db6-abcde"]
E1120 14:30:00.000001    4711 pod_workers.go:1294] "Error syncing pod, skipping"` +
	` err="failed to \"StartContainer\"" podUID="0b52781f-b24d-5685-ddf6-69830ed40ec3"
time="2026-11-20T14:29:59Z" level=info msg="PullImage \"mcr.microsoft.com/oss/kubernetes/pause:3.10\"` +
	` returns image reference \"sha256:ee6521f290b2168b6e0935a181d4cff9be1ac3f505666ef0e3c98fae8199917a\""
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
ee26b0dd4af7e749aa1a8ee3c10ae9923f618980772e473f8819a5d4940e0db` +
	`27ac185f8a0e1d5f84f88bc887fd67b143732c304cc5fa9ad8e6f57f50028a8ff
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 2m0s
authorization:
  mode: Webhook
I1120 flags.go:64] FLAG: --authorization-mode="Webhook"
I1120 flags.go:64] FLAG: --tls-private-key-file=""
I1120 flags.go:64] FLAG: --bootstrap-kubeconfig="/etc/kubernetes/bootstrap-kubelet.conf"
I1120 flags.go:64] FLAG: --authentication-token-webhook="false"
    client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURJVENDQWdtZ0F3SUJBZ0lJ
    client-key: C:\var\lib\kubelet\pki\kubelet-client-current.pem
"Caches populated" type="*v1.Secret" reflector="object-\"kube-system\"/\"coredns-token\""
"MountVolume.SetUp failed" secret="default/db-credentials" not registered
invalid bearer token, token lookup failed
Unable to authenticate the request: invalid bearer token
failed to verify token: signature is invalid
WWW-Authenticate: Bearer realm="https://auth.docker.io/token",service="registry.docker.io"
coredns-abcdef.17a8b9c0d1e2f3a4 event
abcdef.17a8b9c0d1e2f3a4 event
System.Core, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089
Minimum password age (days): 0
automountServiceAccountToken: false
      "automountServiceAccountToken": false,
{"automountServiceAccountToken":true,"password":null}
{"password": null, "n": 1}
  - --token
- --token-file
- C:\token
  "--token-file",
  "x"
serviceAccountName: default
        secretName: db-credentials
  - secretRef: {name: db}
passwordAuthentication yes
#PasswordAuthentication yes
		{"secret":{"secretName":"x","defaultMode":420}}
   Physical Address. . . . . . . . . : 00-15-5D-01-02-03
   IPv6 Address. . . . . . . . . . . : fe80::a1b2:c3d4:e5f6:789a%5
  TCP    10.0.0.5:50123   10.0.0.1:443   ESTABLISHED   4711
C:\k\kubelet.exe --windows-service --config=/var/lib/kubelet/config.yaml ` +
	`--container-runtime-endpoint=npipe:////./pipe/containerd-containerd
The password policy was applied. Elevated Token: %%1842
Token Elevation Type: TokenElevationTypeDefault (1)
https://example.com:8443/path@v1?x=1
http2: Framer 0xc0001: wrote HEADERS flags=END_HEADERS stream=1
git@github.com:swdt-dev/swdt.git
DB_PASSWORD=${DB_PASSWORD}
  password: ""
  token: /var/run/secrets/kubernetes.io/serviceaccount/token
basic training, bearer bonds
--- PASS: TestContainerList (0.00s)
  id-token: write
PWD=/data/build
SORT_KEY=name
{"secrets":["db-creds-1","web-creds-2"],"tokens":5}
x.exe -repotoken $COVERALLS_TOKEN
using secret "kube-system/coredns-token-abc12" for pod 0b52781f-b24d-5685-ddf6-69830ed40ec3
bypass: x1y2z3
net use
https://registry.example:5000/path@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  privateKey: ~/.ssh/id_ed25519
key container 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 removed
type=io.containerd.token.v1 pods=["default/web-1"] map[token:[]]
-----BEGIN CERTIFICATE-----
MIIDITCCAgmgAwIBAgIIE4bXv5R1bF8wDQYJKoZIhvcNAQELBQAwFTETMBEGA1UE
AxMKa3ViZXJuZXRlczAeFw0yNjExMjAxNDI5NTlaFw0yNzExMjAxNDI5NTlaMBUx
-----END CERTIFICATE-----
{"level":"info","ts":1700000000.1,"msg":"token bucket refilled","tokens":5}
4711 10 20 30 40 50 60 70 80 90
4710 10 20 30 40 50 60 70 80 90
20261129  12 24 36 48 60 72 84 96
00000000: 1 2 3
{"tokens":{"value":5},"zone":{"value":"eu-west"}}
{"password":{"type":"string","default":null,"description":"of the node"},"user":{"default":"web"}}
password: {type: string, value: null}
token { expires: 5 } zone { value: "eu" }
path=%2Fvar%2Flib%2Fkubelet&name=%22web%22&tokens=%22%22
AADSTS700016: Application 1Q~ was not found
sha256~ is a prefix
K10 and K3s
psk: none
`

// Each line of a key with a container's log in front shows nothing alone. The largest key of RSA, with 16,384 bits, has
// 199 lines. A text that never ends a key is ordinary again after 400 lines.
func TestAKeyInALogEnds(t *testing.T) {
	const front = "2026-11-20T14:29:59.1Z stdout F "
	lines := []string{"-----BEGIN PRIVATE KEY-----"}
	for i := range 450 {
		sum := sha512.Sum512([]byte{byte(i), byte(i >> 8)})
		lines = append(lines, base64.StdEncoding.EncodeToString(sum[:48]))
	}
	got := strings.Split(tested(t).String(front+strings.Join(lines, "\n"+front)), "\n")
	for i := range lines {
		switch redacted := got[i] != front+lines[i]; {
		case i >= 1 && i <= 199 && !redacted:
			t.Fatalf("line %d of the key is left: %s", i, got[i])
		case i > 400 && redacted:
			t.Fatalf("line %d after the beginning of a key became %s", i, got[i])
		}
	}
}

// A value that refers to a secret has at most 256 bytes: a longer one is redacted, whatever it begins with.
func TestALongValueIsNoReference(t *testing.T) {
	r := tested(t)
	for _, begin := range []string{"password=${", "token=/var/", "private-key=C:\\", "secret=default/"} {
		name, value, _ := strings.Cut(begin, "=")
		for length, stays := range map[int]bool{256: true, 257: false} {
			text := begin + strings.Repeat("x", length-len(value))
			if got := r.String(text); (got == text) != stays || !stays && got != name+"="+Mark {
				t.Errorf("%s of %d bytes became %.80s", begin, length, got)
			}
		}
	}
}

// Text that matches a pattern is redacted in a word of any length, and the
// search is fast.
func TestPatternsInALongWord(t *testing.T) {
	r, err := New([]string{"*bluebird*", "**.example.com", "a*b?c**d"})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a0b1,", 30_000) + "bluebird" + strings.Repeat(",a0b1", 30_000) + " next"
	got := r.String(text)
	if strings.Contains(got, "bluebird") || !strings.HasSuffix(got, " next") {
		t.Errorf("it is left, or more went: %d bytes, …%.80q", len(got), got[max(0, len(got)-80):])
	}
}

func TestPatternsAreChecked(t *testing.T) {
	for _, bad := range []string{"", "*", "a*", "ab?", "a\nbcd", strings.Repeat("x", MaxPattern+1)} {
		if _, err := New([]string{bad}); err == nil {
			t.Errorf("%q passes for a pattern", bad)
		}
	}
	if _, err := New(slices.Repeat([]string{"enough"}, MaxPatterns+1)); err == nil {
		t.Errorf("%d patterns pass", MaxPatterns+1)
	}
}

func TestMessages(t *testing.T) {
	r := tested(t)
	entry := func(key, value string) []byte {
		b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
		return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), value)
	}
	var message []byte
	for _, inner := range [][]byte{entry("DB_PASSWORD", "hunter2"), entry("info", `{"token":"hunter2","image":"x"}`),
		entry("app", "web")} {
		message = protowire.AppendBytes(protowire.AppendTag(message, 7, protowire.BytesType), inner)
	}
	message = protowire.AppendVarint(protowire.AppendTag(message, 3, protowire.VarintType), 42)
	got := r.Message(message)
	switch {
	case bytes.Contains(got, []byte("hunter2")):
		t.Fatalf("the secret is not redacted: %q", got)
	case !bytes.Contains(got, []byte(`{"token":"REDACTED","image":"x"}`)):
		t.Fatalf("the token in the JSON is not redacted: %q", got)
	case !bytes.Contains(got, []byte("web")):
		t.Fatalf("the ordinary text is missing: %q", got)
	}
	if again := r.Message(got); !bytes.Equal(again, got) || len(got) == 0 {
		t.Errorf("it is no message any more: %q", again)
	}
	if r.Message([]byte{0xff}) != nil {
		t.Error("what cannot be read passes")
	}
}

func TestNamed(t *testing.T) {
	r := tested(t)
	for name, want := range map[string]string{"DB_PASSWORD": Mark, "GITHUB_TOKEN": Mark, "Path": "hunter2",
		"auth": "hunter2", "certificateKey": Mark} {
		if got := string(r.Named(name, []byte("hunter2"))); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func BenchmarkLog(b *testing.B) {
	var log bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&log, "I1120 14:29:59.%06d    4711 kubelet.go:2345] \"SyncLoop ADD\" source=\"api\" "+
			"pods=[\"default/web-6d4cf56db6-abcde\"] latency=%dms\n", i, i%97)
	}
	r, err := New(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		s := r.Stream()
		s.Next(log.Bytes())
		s.End()
	}
}
