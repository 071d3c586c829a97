package result_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui/result"
)

type sample struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

type fleet struct {
	Nodes []member `json:"nodes"`
}

type member struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

func writer(t *testing.T, format string) result.Writer {
	t.Helper()
	name, template, found, err := result.ParseTemplate(format)
	if err != nil {
		t.Fatal(err)
	}
	if found {
		format = name
	}
	return result.Writer{Format: format, Template: template}
}

func TestWrite(t *testing.T) {
	value := sample{"kubelet", `c:\k\<kubelet>.exe`}
	for format, want := range map[string][2]string{
		result.JSON: {
			"{\n  \"name\": \"kubelet\",\n  \"path\": \"c:\\\\k\\\\<kubelet>.exe\"\n}\n",
			"{\"name\":\"kubelet\",\"path\":\"c:\\\\k\\\\<kubelet>.exe\"}\n",
		},
		result.YAML: {"name: kubelet\npath: c:\\k\\<kubelet>.exe\n",
			"---\nname: kubelet\npath: c:\\k\\<kubelet>.exe\n"},
		"jsonpath=name":                 {"kubelet", "kubelet\n"},
		"jsonpath={.name}":              {"kubelet", "kubelet\n"},
		"go-template={{.name}}":         {"kubelet", "kubelet\n"},
		`go-template={{.name}}{{"\n"}}`: {"kubelet\n", "kubelet\n"},
		"custom-columns=NAME:.name,MORE:.more": {"NAME      MORE\nkubelet   <none>\n",
			"NAME      MORE\nkubelet   <none>\n"},
	} {
		var document, record strings.Builder
		w := writer(t, format)
		if err := w.Write(&document, value); err != nil || document.String() != want[0] {
			t.Errorf("%s: %q, %v; want %q", format, document.String(), err, want[0])
		}
		if err := w.WriteRecord(&record, value); err != nil || record.String() != want[1] {
			t.Errorf("%s: the record %q, %v; want %q", format, record.String(), err, want[1])
		}
	}
}

func TestNamesAreThoseOfNodesThatDidNotFail(t *testing.T) {
	var out strings.Builder
	all := fleet{[]member{{Name: "n1"}, {Name: "n2", Error: "refused"}, {Name: "n3"}}}
	if err := writer(t, result.Name).Write(&out, all); err != nil || out.String() != "node/n1\nnode/n3\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	switch {
	case !result.HasNames(all):
		t.Errorf("result.HasNames(all) is wrong; HasNames: only a document with nodes has names")
	case result.HasNames(sample{}):
		t.Errorf("result.HasNames(sample{}) is wrong; HasNames: only a document with nodes has names")
	case result.HasNames([]string{}):
		t.Errorf("result.HasNames([]string{}) is wrong; HasNames: only a document with nodes has names")
	}
}

func TestColumnsHaveARowForEachNode(t *testing.T) {
	var out strings.Builder
	all := fleet{[]member{{Name: "n1"}, {Name: "n2", Error: "refused"}}}
	const want = "NODE   ERROR\nn1     <none>\nn2     refused\n"
	if err := writer(t, "custom-columns=NODE:.name,ERROR:error").Write(&out, all); err != nil || out.String() != want {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestAWrongTemplateIsAnError(t *testing.T) {
	for _, wrong := range []string{
		"jsonpath={.nodes[}", "jsonpath", "jsonpath=", "go-template={{.a", "go-template", "custom-columns=NAME",
		"custom-columns=:.a", "custom-columns=A:.b[,", "custom-columns=",
	} {
		if _, _, found, err := result.ParseTemplate(wrong); !found || err == nil || !strings.Contains(err.Error(), "write it as in") {
			t.Errorf("-o %s: %v", wrong, err)
		}
	}
}

func TestWriteReportsAFullDisk(t *testing.T) {
	full := errors.New("disk full")
	for _, format := range []string{result.JSON, result.YAML, "jsonpath=name", "custom-columns=A:.name"} {
		if err := writer(t, format).Write(failing{full}, sample{Name: "n"}); !errors.Is(err, full) {
			t.Errorf("%s: %v", format, err)
		}
		if err := writer(t, format).WriteRecord(failing{full}, sample{Name: "n"}); !errors.Is(err, full) {
			t.Errorf("%s: the record: %v", format, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// The header of a table comes once for all records, as with kubectl get -w.
func TestHeaderOfRecords(t *testing.T) {
	var out strings.Builder
	w := writer(t, "custom-columns=NAME:.name")
	for _, name := range []string{"a", "b"} {
		if err := w.WriteRecord(&out, sample{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "NAME\na\nb\n" {
		t.Errorf("the records are %q", out.String())
	}
}
