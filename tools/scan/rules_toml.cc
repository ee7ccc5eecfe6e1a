/* SPDX-License-Identifier: MIT */
/*
 * The one file of C++: parses TOML by toml++ and copies the tree into the
 * document. Whatever is thrown ends here: no memory, and assertions of the
 * library, which texts that are no TOML can violate (`x [1]` in release 3.3).
 */
#undef NDEBUG /* it would turn assertions into promises to the compiler */
#include <stdexcept>
[[noreturn]] static void fail_assertion(const char *condition)
{
	throw std::logic_error(condition);
}
#define TOML_ASSERT(condition) \
	((condition) ? static_cast<void>(0) : fail_assertion(#condition))
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_UNRELEASED_FEATURES 0

extern "C" {
#include "tools/scan/rules_toml.h"
}

#include <cerrno>
#include <cstdio>
#include <new>
#include <string_view>
#include <toml++/toml.h>

namespace
{

const char *copy_text(toml_document *document, std::string_view text)
{
	char *copy = rule_memory_copy(&document->memory, text.data(), text.size());

	if (copy == nullptr) {
		throw std::bad_alloc();
	}
	return copy;
}

toml_value *take_values(toml_document *document, size_t count)
{
	void *values = rule_memory_take(&document->memory, (count + 1) * sizeof(toml_value));

	if (values == nullptr) {
		throw std::bad_alloc();
	}
	return static_cast<toml_value *>(values);
}

void convert(toml_document *document, const toml::node &node, toml_value *out);

void convert_table(toml_document *document, const toml::table &table, toml_value *out)
{
	out->kind = TOML_TABLE;
	out->children = take_values(document, table.size());
	for (const auto &[key, value] : table) {
		toml_value *child = &out->children[out->child_count++];

		child->key = copy_text(document, key.str());
		convert(document, value, child);
	}
}

void convert_array(toml_document *document, const toml::array &array, toml_value *out)
{
	out->kind = TOML_ARRAY;
	out->children = take_values(document, array.size());
	for (const toml::node &value : array) {
		convert(document, value, &out->children[out->child_count++]);
	}
}

void convert_string(toml_document *document, const toml::value<std::string> &value, toml_value *out)
{
	const std::string &text = value.get();
	uint32_t newlines = 0;

	out->kind = TOML_STRING;
	out->text = copy_text(document, text);
	out->length = text.size();
	for (char byte : text) {
		newlines += byte == '\n';
	}
	/* The newline after opening quotes is no part of the text. */
	out->text_line = out->line + (value.source().end.line - out->line > newlines);
}

void convert(toml_document *document, const toml::node &node, toml_value *out)
{
	out->line = static_cast<uint32_t>(node.source().begin.line);
	if (const toml::table *table = node.as_table()) {
		convert_table(document, *table, out);
	} else if (const toml::array *array = node.as_array()) {
		convert_array(document, *array, out);
	} else if (const toml::value<std::string> *string = node.as_string()) {
		convert_string(document, *string, out);
	} else if (const toml::value<int64_t> *integer = node.as_integer()) {
		out->kind = TOML_INTEGER;
		out->integer = integer->get();
		out->number = static_cast<double>(out->integer);
	} else if (const toml::value<double> *number = node.as_floating_point()) {
		out->kind = TOML_FLOAT;
		out->number = number->get();
	} else if (const toml::value<bool> *truth = node.as_boolean()) {
		out->kind = TOML_BOOLEAN;
		out->truth = truth->get();
	} else {
		out->kind = TOML_TIME;
	}
}

} // namespace

int toml_parse_checked(
	const char *text, size_t length, toml_document *document, toml_trouble *out_trouble)
try {
	toml::parse_result result = toml::parse(std::string_view(text, length));

	if (!result) {
		const toml::parse_error &error = result.error();
		std::string_view reason = error.description();

		out_trouble->line = static_cast<uint32_t>(error.source().begin.line);
		std::snprintf(out_trouble->reason, sizeof(out_trouble->reason), "no TOML: %.*s",
			static_cast<int>(reason.size()), reason.data());
		return -EINVAL;
	}
	convert(document, result.table(), &document->root);
	return 0;
} catch (const std::logic_error &) {
	out_trouble->line = 0;
	std::snprintf(out_trouble->reason, sizeof(out_trouble->reason),
		"no TOML: the parser gave up");
	return -EINVAL;
} catch (...) {
	return -ENOMEM;
}
