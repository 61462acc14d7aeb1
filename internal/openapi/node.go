package openapi

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// mapping makes a mapping of keys and values, in their order.
func mapping(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(pairs); i += 2 {
		set(n, fmt.Sprint(pairs[i]), pairs[i+1])
	}
	return n
}

// set adds a key, or changes its value.
func set(n *yaml.Node, key string, value any) {
	if old := find(n, key); old != nil {
		*old = *scalar(value)
		return
	}
	n.Content = append(n.Content, scalar(key), scalar(value))
}

func find(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// entry returns the mapping under a key, which is made if it is not there.
func entry(n *yaml.Node, key string) *yaml.Node {
	if find(n, key) == nil {
		set(n, key, mapping())
	}
	return find(n, key)
}

func list(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
}

// scalar is a node of a value; a node is itself.
func scalar(value any) *yaml.Node {
	switch v := value.(type) {
	case *yaml.Node:
		return v
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	case int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(v)}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprint(value)}
}

func reference(kind, name string) *yaml.Node {
	return mapping("$ref", "#/components/"+kind+"/"+name)
}
