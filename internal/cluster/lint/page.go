package lint

import (
	"fmt"
	"io"
	"strings"
)

// WritePage writes the documentation of all rules as a Markdown page: a table, then one section for each rule.
func WritePage(w io.Writer) error {
	rules := Rules()
	var page strings.Builder
	fmt.Fprintf(&page, "`swdt lint` holds manifests against %d rules. The effect is what becomes of the manifest otherwise: "+
		"*rejected* by the API server, *fails* to run, *ignored*, *changed* in its meaning, or *noted*, which works with a difference. "+
		"The severity is the highest that a finding of the rule can have.\n\n", len(rules))
	page.WriteString("| rule | severity | effect | expects |\n|---|---|---|---|\n")
	for _, r := range rules {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s | %s | %s |\n", r.ID, r.ID, r.Severity, r.Effect, cell(r.Title))
	}
	for _, r := range rules {
		fmt.Fprintf(&page, "\n## %s\n\nExpects: %s.\n\nOtherwise: %s\n\n", r.ID, r.Title, r.Means)
		byFix := ""
		if r.fix != nil {
			byFix = " `--fix` does it."
		}
		fmt.Fprintf(&page, "Remedy: %s.%s\n\n", strings.TrimSuffix(r.Remedy, "."), byFix)
		fmt.Fprintf(&page, "Found:\n\n```yaml\n%s```\n\nNot found:\n\n```yaml\n%s```\n\n", shown(r.Bad), shown(r.Good))
		since := ""
		if r.Since != "" {
			since = "Since Kubernetes " + r.Since + ". "
		}
		fmt.Fprintf(&page, "Severity: %s. %sSource: <%s>\n", r.Severity, since, r.Source)
	}
	_, err := io.WriteString(w, page.String())
	return err
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// shown returns an example as the page shows it: the fields of a container below it.
func shown(example string) string {
	if strings.HasPrefix(example, " ") {
		example = "containers:\n- name: web\n" + example
	}
	return strings.TrimRight(example, "\n") + "\n"
}
