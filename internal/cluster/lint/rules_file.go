package lint

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// fileRules are about texts as such. The first one has no check: its findings are documents that no object came of.
func fileRules() []Rule {
	return []Rule{
		{
			ID: "file-yaml", Severity: finding.Error, Effect: Rejected,
			Title: "each document is YAML or JSON",
			Means: "kubectl refuses the file, and swdt looks at no object of the document. A document with {{ is named as not read, " +
				"since it may be a template, and so is JSON without an apiVersion.",
			Remedy: "correct the document", Source: "https://yaml.org/spec/1.2.2/",
			Bad: "apiVersion: v1\nkind: Pod\nspec: [\n", Good: "hostname: web",
		},
		{
			ID: "file-duplicate-key", Severity: finding.Warning, Effect: Ignored,
			Title:  "no key is twice in a mapping",
			Means:  "kubectl takes the last value and ignores the others, and so does swdt. kustomize refuses the file.",
			Remedy: "remove one of them", Source: "https://yaml.org/spec/1.2.2/#3213-node-comparison", object: duplicateKeys,
			Bad: "hostname: web\nhostname: api", Good: "hostname: web",
		},
	}
}

func duplicateKeys(o *object, _ *manifests, found report) {
	for _, at := range o.duplicates {
		found(seen{at: at, what: fmt.Sprintf("the key %s is there twice, and the last value counts", shortened(at[len(at)-1]))})
	}
}
