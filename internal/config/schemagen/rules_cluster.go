package main

import "github.com/swdt-dev/swdt/api/v1alpha1"

// clusterRules returns the rules of a document of kind Cluster, in the form in which rules returns the
// other rules.
func clusterRules() map[string]object {
	const (
		image  = `[a-z0-9][a-zA-Z0-9._:/@-]{0,400}`
		host   = `[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?`
		name   = `^([a-z0-9*]([-a-z0-9.]{0,251}[a-z0-9])?|[0-9A-Fa-f:.]+(%.+)?)$`
		subnet = `([0-9]{1,3}\.){3}[0-9]{1,3}/`
	)
	windows := object{"anyOf": []any{set("windowsManifest"), set("windowsSHA256")}}
	crds := object{"anyOf": []any{set("crdManifest"), set("crdSHA256")}}
	manifest := object{"anyOf": []any{set("version"), set("manifest"), set("sha256"), crds, windows}}
	plugin := func(name string) object {
		return object{"required": []string{"plugin"}, "properties": object{"plugin": object{"const": name}}}
	}
	return map[string]object{
		"Cluster": {"allOf": []any{object{"properties": object{"metadata": object{"properties": object{
			"name": object{"pattern": `^[a-z0-9]([-a-z0-9.]{0,48}[a-z0-9])?$`},
		}}}}}},
		"Cluster.apiVersion": {"type": "string", "enum": []any{v1alpha1.APIVersion}},
		"Cluster.kind":       {"type": "string", "enum": []any{v1alpha1.ClusterKind}},

		"ClusterSpec": {"allOf": []any{object{ // by default, an existing cluster has the plugin none
			"if": object{"required": []string{"network"}, "properties": object{
				"controlPlane": set("existing"), "network": object{"not": set("plugin")},
			}},
			"then": object{"properties": object{"network": object{"not": manifest}}},
		}}},
		"ControlPlane": {"oneOf": []any{set("kind"), set("existing")}},

		"KindControlPlane.image":            {"type": "string", "pattern": `^(` + image + `)?$`},
		"KindControlPlane.workers":          {"minimum": 0, "maximum": 20},
		"KindControlPlane.runtime":          choice("docker", "podman", "nerdctl"),
		"KindControlPlane.apiServerAddress": {"type": "string", "pattern": `^[0-9A-Fa-f:.]*$`},
		"KindControlPlane.apiServerPort":    {"minimum": 0, "maximum": 65535},
		"KindControlPlane.apiServerNames": {"maxItems": 32, "uniqueItems": true,
			"items": object{"type": "string", "pattern": name}},
		"KindControlPlane.images": {"maxItems": 100, "uniqueItems": true,
			"items": object{"type": "string", "pattern": `^` + image + `$`}},
		"KindControlPlane.registryMirrors": {"maxItems": 32},
		"RegistryMirror.registry":          {"type": "string", "pattern": `^(_default|` + host + `(:[0-9]{1,5})?)$`},
		"RegistryMirror.endpoints":         {"minItems": 1, "maxItems": 32, "items": mirror()},

		"ClusterNetwork": {"allOf": []any{
			object{"not": object{"allOf": []any{set("version"), set("manifest")}}},
			object{"not": object{"allOf": []any{plugin(v1alpha1.NoPlugin), manifest}}},
			object{"anyOf": []any{plugin(v1alpha1.AntreaPlugin), object{"not": windows}}},
			object{"not": without("manifest", "windowsManifest")},
			object{"anyOf": []any{object{"not": set("plugin")}, plugin(v1alpha1.CalicoPlugin), object{"not": crds}}},
			object{"not": without("manifest", "crdManifest")},
			object{"not": without("crdManifest", "crdSHA256")},
		}},
		"ClusterNetwork.podSubnet":     {"type": "string", "pattern": `^(` + subnet + `([0-9]|1[0-9]|2[0-4]))?$`},
		"ClusterNetwork.serviceSubnet": {"type": "string", "pattern": `^(` + subnet + `([0-9]|1[0-9]|2[0-8]))?$`},
		"ClusterNetwork.plugin": choice(v1alpha1.CalicoPlugin, v1alpha1.FlannelPlugin, v1alpha1.AntreaPlugin,
			v1alpha1.NoPlugin),
		"ClusterNetwork.sha256":        {"type": "string", "pattern": `^([0-9A-Fa-f]{64})?$`},
		"ClusterNetwork.crdSHA256":     {"type": "string", "pattern": `^([0-9A-Fa-f]{64})?$`},
		"ClusterNetwork.windowsSHA256": {"type": "string", "pattern": `^([0-9A-Fa-f]{64})?$`},
	}
}

// mirror matches the URLs of mirrors that v1alpha1.ValidateCluster accepts, as far as patterns can
// express that.
func mirror() object {
	return object{
		"type":    "string",
		"pattern": `^[hH][tT][tT][pP][sS]?://[^/?#@:\s][^/?#@\s]*(/[^?#\s]*)?$`,
		"not": object{"pattern": `://(127\.[0-9]+\.[0-9]+\.[0-9]+|\[::1\]|` +
			`[lL][oO][cC][aA][lL][hH][oO][sS][tT])(:|/|$)`},
	}
}
