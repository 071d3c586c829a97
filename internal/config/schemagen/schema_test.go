package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

const folder = "../../../api/v1alpha1"

func TestCommittedSchemaIsCurrent(t *testing.T) {
	want, err := generate(folder)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(folder, "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("api/v1alpha1/schema.json is not what the types give; run `go generate ./api/v1alpha1`")
	}
}

func TestEveryFieldIsExplained(t *testing.T) {
	schema, err := generate(folder)
	if err != nil {
		t.Fatal(err)
	}
	var root object
	if err := json.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	explained := 0
	var walk func(schema any, path string)
	walk = func(schema any, path string) {
		s, _ := schema.(object)
		properties, _ := s["properties"].(object)
		for name, property := range properties {
			field := path + "." + name
			if description, _ := property.(object)["description"].(string); description == "" {
				t.Errorf("%s has no comment for the schema", field)
			}
			explained++
			walk(property, field)
		}
		if items, ok := s["items"]; ok {
			walk(items, path+"[]")
		}
	}
	for kind, least := range map[string]int{"Node": 40, "Cluster": 20} {
		explained = 0
		walk(root["definitions"].(object)[kind], kind)
		if explained < least {
			t.Errorf("only %d fields of %s were seen", explained, kind)
		}
	}
}
