// Package form reads what a person types in answer to a question of an MCP server. The
// question has a schema: an object with properties that are strings, numbers, booleans or
// choices.
package form

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Field is one thing that is asked for.
type Field struct {
	Name     string
	Title    string // for people; may be empty
	Type     string // string, integer, number, boolean, or array of strings
	Choices  []string
	Default  json.RawMessage // nil if there is none
	Required bool
}

// Fields are those of a schema, those that are required first.
func Fields(schema json.RawMessage) []Field {
	var s struct {
		Properties map[string]struct {
			Type        string
			Title       string
			Description string
			Enum        []string
			OneOf       []struct{ Const string }
			Items       struct {
				Enum  []string
				AnyOf []struct{ Const string }
			}
			Default json.RawMessage
		}
		Required []string
	}
	if json.Unmarshal(schema, &s) != nil { // there is nothing that could be asked for
		return nil
	}
	var list []Field
	for name, f := range s.Properties {
		field := Field{Name: name, Title: f.Title, Type: f.Type, Choices: append(f.Enum, f.Items.Enum...), Default: f.Default, Required: slices.Contains(s.Required, name)}
		if field.Title == "" {
			field.Title = f.Description
		}
		for _, c := range append(f.OneOf, f.Items.AnyOf...) {
			field.Choices = append(field.Choices, c.Const)
		}
		list = append(list, field)
	}
	slices.SortFunc(list, func(a, b Field) int {
		if a.Required != b.Required {
			if a.Required {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

// Complete reports whether an empty answer will do.
func Complete(fields []Field) bool {
	return !slices.ContainsFunc(fields, func(f Field) bool { return f.Required && f.Default == nil })
}

// String describes the field in one line.
func (f Field) String() string {
	text := f.Name
	if f.Title != "" && f.Title != f.Name {
		text += ": " + f.Title
	}
	var notes []string
	switch {
	case len(f.Choices) > 0:
		notes = append(notes, strings.Join(f.Choices, ", "))
	case f.Type != "string" && f.Type != "":
		notes = append(notes, f.Type)
	}
	if f.Default != nil {
		notes = append(notes, "unless given "+string(f.Default))
	}
	if f.Required {
		notes = append(notes, "required")
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, "; ") + ")"
	}
	return text
}

// Template is what a person can fill in: name= for each field, with its default.
func Template(fields []Field) string {
	var parts []string
	for _, f := range fields {
		value := strings.Trim(string(f.Default), `"`)
		if strings.ContainsAny(value, " \t") {
			value = string(f.Default)
		}
		parts = append(parts, f.Name+"="+value)
	}
	return strings.Join(parts, " ")
}

// Read reads an answer: a JSON object, or name=value pairs, or for a single field just the
// value. A value with spaces is quoted. What is left empty is not part of the answer.
func Read(fields []Field, text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	var object map[string]any
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &object) == nil {
		return json.RawMessage(text), nil
	}
	answer := map[string]any{}
	pairs, ok := split(text)
	if len(fields) == 1 && !strings.HasPrefix(text, fields[0].Name+"=") {
		pairs, ok = [][2]string{{fields[0].Name, text}}, true
	}
	if !ok {
		return nil, fmt.Errorf("an answer has the form %s", Template(fields))
	}
	for _, pair := range pairs {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == pair[0] })
		if i < 0 {
			return nil, fmt.Errorf("%s was not asked for", pair[0])
		}
		if pair[1] == "" {
			continue
		}
		v, err := fields[i].value(pair[1])
		if err != nil {
			return nil, err
		}
		answer[pair[0]] = v
	}
	for _, f := range fields {
		if _, given := answer[f.Name]; f.Required && !given && f.Default == nil {
			return nil, fmt.Errorf("%s is required", f.Name)
		}
	}
	return json.Marshal(answer)
}

// value reads the value of a field.
func (f Field) value(text string) (any, error) {
	switch f.Type {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s must be a whole number, not %q", f.Name, text)
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%s must be a number, not %q", f.Name, text)
		}
		return n, nil
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "yes", "y":
			return true, nil
		case "false", "no", "n":
			return false, nil
		}
		return nil, fmt.Errorf("%s must be true or false, not %q", f.Name, text)
	}
	list := []string{text}
	if f.Type == "array" {
		list = strings.Split(text, ",")
	}
	for _, one := range list {
		if len(f.Choices) > 0 && !slices.Contains(f.Choices, one) {
			return nil, fmt.Errorf("%s must be one of %s, not %q", f.Name, strings.Join(f.Choices, ", "), one)
		}
	}
	if f.Type == "array" {
		return list, nil
	}
	return text, nil
}

// split takes name=value pairs apart. It reports false if the text is no such thing.
func split(text string) (pairs [][2]string, ok bool) {
	for text != "" {
		name, rest, found := strings.Cut(text, "=")
		if !found || name == "" || strings.ContainsAny(name, " \t\n") {
			return nil, false
		}
		value := ""
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, false
			}
			value, _ = strconv.Unquote(quoted) // it is one
			rest = rest[len(quoted):]
		} else {
			value, rest, _ = strings.Cut(rest, " ")
		}
		pairs = append(pairs, [2]string{name, value})
		text = strings.TrimSpace(rest)
	}
	return pairs, true
}
