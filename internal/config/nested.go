package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
)

const (
	containerdConfigField = "spec.kubernetes.containerd.config"
	configPatchField      = "spec.kubernetes.kubelet.configPatch"
)

// checkNested checks the documents of other programs that a node file contains, as these programs
// read them: containerd's TOML and kubelet's KubeletConfiguration.
func (d *decoder) checkNested(k v1alpha1.Kubernetes) {
	mistakes := containerdconfig.Check([]byte(k.Containerd.Config))
	refused := slices.ContainsFunc(mistakes, func(m containerdconfig.Mistake) bool { return !m.Ignored })
	for _, m := range mistakes {
		line, within := d.textLine(containerdConfigField, m.Line)
		what := m.What
		if !within && m.Line > 0 {
			what = fmt.Sprintf("line %d of the TOML: %s", m.Line, what)
		}
		d.nested(line, containerdConfigField, what, m.Remedy, !refused)
	}
	d.checkConfigPatch(k.Kubelet.ConfigPatch)
}

// checkConfigPatch checks the drop-in that `swdt join` writes for kubelet.
func (d *decoder) checkConfigPatch(patch map[string]any) {
	if len(patch) == 0 {
		return
	}
	text, err := kubeletconfig.Marshal(patch)
	if err != nil {
		d.nested(d.lines[configPatchField], configPatchField, "cannot be written for kubelet",
			"use texts as keys, and no infinite numbers", false)
		return
	}
	mistakes := append(kubeletconfig.Check(text, kubeletconfig.DropIn), header(patch)...)
	refused := slices.ContainsFunc(mistakes, func(m kubeletconfig.Mistake) bool { return m.Ends })
	for _, m := range mistakes {
		field, remedy := patchField(m.Field), m.Remedy
		if meant := closest(m.Field[strings.LastIndexByte(m.Field, '.')+1:], m.Known); meant != "" {
			remedy = "did you mean " + meant + "?"
		}
		d.nested(lineOf(field, d.lines), field, m.What, remedy, !refused)
	}
}

// header returns the mistakes of the fields that swdt writes itself.
func header(patch map[string]any) (mistakes []kubeletconfig.Mistake) {
	for _, own := range [][2]string{{"apiVersion", kubeletconfig.APIVersion}, {"kind", kubeletconfig.Kind}} {
		if value, ok := patch[own[0]]; ok && value != own[1] {
			mistakes = append(mistakes, kubeletconfig.Mistake{Field: own[0], Ends: true,
				What: "is not " + own[1] + ", the only one with which kubelet starts", Remedy: "remove it: swdt writes it"})
		}
	}
	return mistakes
}

// patchField returns the path of a field of KubeletConfiguration in the node file, as in
// configPatch[logging].verbosity.
func patchField(field string) string {
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	return configPatchField + "[" + field[:end] + "]" + field[end:]
}

// nested records a mistake in a nested document. It is a warning if the document's program ignores
// all its mistakes.
func (d *decoder) nested(line int, field, what, remedy string, warning bool) {
	p := Problem{File: d.file, Line: line, Field: field, What: what, Remedy: remedy}
	if warning {
		d.warnings = append(d.warnings, p.String())
		return
	}
	d.problems = append(d.problems, p)
}

// textLine returns the line of the node file that has a line of a field's text. If the text is not
// a block of lines (|), textLine returns the field's line, and false.
func (d *decoder) textLine(field string, line int) (number int, within bool) {
	if first, ok := d.blocks[field]; ok && line > 0 {
		return first + line - 1, true
	}
	return lineOf(field, d.lines), false
}
