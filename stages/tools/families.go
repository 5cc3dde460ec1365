package tools

import "strings"

// usualThinks are marks that models use whatever their template says.
var usualThinks = [...]think{
	{open: "<think>", close: "</think>"},
	{open: "<thinking>", close: "</thinking>"},
	{open: "<reasoning>", close: "</reasoning>"},
	{open: "<seed:think>", close: "</seed:think>", solid: true},
	{open: "[THINK]", close: "[/THINK]", anywhere: true, solid: true},
	{open: "<|START_THINKING|>", close: "<|END_THINKING|>"},
	{open: "<|channel>thought", close: "<channel|>", anywhere: true},
}

// family is the syntax of a family of models, which is told by a sign in the template; a template may show several.
type family struct {
	sign, also, unless string // also: another sign
	thinks             []think
	sections           []section
	skips              []string
	channels           *channels
}

// functions are tags as Qwen3-Coder writes them, with values on lines of their own or not.
func functions(lines bool) *tagged {
	return &tagged{call: tag{open: "<function=", mid: ">"}, callClose: "</function>",
		param: tag{open: "<parameter=", mid: ">"}, close: "</parameter>", lines: lines}
}

// invokes are tags of attributes, as Anthropic's models first had them, with something before each name.
func invokes(before string) *tagged {
	return &tagged{call: tag{open: "<" + before + `invoke name="`, mid: `"`, end: ">"}, callClose: "</" + before + "invoke>",
		param: tag{open: "<" + before + `parameter name="`, mid: `"`, end: ">"}, close: "</" + before + "parameter>"}
}

// pairs are tags of keys and values, as GLM writes them, with something behind each name.
func pairs(behind string) *tagged {
	return &tagged{skip: "<tool_sep" + behind + ">", objects: behind == "",
		param: tag{open: "<arg_key" + behind + ">", mid: "</arg_key" + behind + ">", end: "<arg_value" + behind + ">"},
		close: "</arg_value" + behind + ">"}
}

// bareStrings is in a template that writes strings of calls between single quotes as they are.
const bareStrings = `"'" + arg_value + "'"`

// lfm2 is a family of LFM2's calls, of which strings in single quotes may be bare.
func lfm2(f family, bare bool) family {
	f.thinks = []think{{open: "<think>", close: "</think>", solid: true}}
	f.sections = []section{{open: "<|tool_call_start|>", close: "<|tool_call_end|>",
		bodies: []body{&objects{}, &python{bare: bare}}}}
	return f
}

// families are those whose models write calls. What follows a section's mark says which of its bodies it is, so that
// one entry serves all who share the mark.
var families = [...]family{
	{sign: "<tool_call>", unless: "minimax[", sections: []section{
		{open: "<tool_call>", close: "</tool_call>", bodies: []body{&objects{}, functions(true), pairs("")}},
		{open: "{", keep: true, bare: true, bodies: []body{&objects{known: true}}},
	}},
	{sign: "<parameter=", unless: "<seed:tool_call>", sections: []section{
		{open: "<function=", keep: true, close: "</tool_call>", bodies: []body{functions(true)}},
	}},
	{sign: "<function=", unless: "<parameter=", sections: []section{
		{open: "<function=", keep: true, bodies: []body{&named{open: "<function=", mid: ">", end: "</function>"}}},
	}},
	{sign: "<seed:tool_call>", sections: []section{
		{open: "<seed:tool_call>", close: "</seed:tool_call>", bodies: []body{functions(false)}},
	}},
	{sign: ":opensource", thinks: []think{{open: "<think:opensource>", close: "</think:opensource>"}}, sections: []section{
		{open: "<tool_calls:opensource>", close: "</tool_calls:opensource>", bodies: []body{hunyuan(":opensource")}},
	}},
	{sign: "<tool_sep>", sections: []section{
		{open: "<tool_calls>", close: "</tool_calls>", bodies: []body{hunyuan("")}},
	}},
	{sign: "<tool_calls>", unless: "<tool_sep>", sections: []section{
		{open: "<tool_calls>", close: "</tool_calls>", bodies: []body{&objects{}}},
	}},
	{sign: "<TOOLCALL>", sections: []section{{open: "<TOOLCALL>", close: "</TOOLCALL>", bodies: []body{&objects{}}}}},
	{sign: "<minimax:tool_call>", sections: []section{
		{open: "<minimax:tool_call>", close: "</minimax:tool_call>", bodies: []body{invokes("")}},
	}},
	{sign: "minimax[", thinks: []think{{open: "<mm:think>", close: "</mm:think>"}}, sections: []section{{
		open: "]<]minimax[>[<tool_call>", close: "]<]minimax[>[</tool_call>", bodies: []body{&tagged{
			call:      tag{open: `]<]minimax[>[<invoke name="`, mid: `"`, end: ">"},
			callClose: "]<]minimax[>[</invoke>", param: tag{open: "]<]minimax[>[<", mid: ">"},
			close: "]<]minimax[>[</", elements: true,
		}},
	}}},
	{sign: "｜DSML｜", unless: "tool_calls>", sections: []section{
		{open: "<｜DSML｜function_calls>", close: "</｜DSML｜function_calls>", bodies: []body{invokes("｜DSML｜")}},
	}},
	{sign: "｜DSML｜", unless: "function_calls", sections: []section{
		{open: "<｜DSML｜tool_calls>", close: "</｜DSML｜tool_calls>", bodies: []body{invokes("｜DSML｜")}},
	}},
	{sign: "<｜tool▁call▁begin｜>", sections: []section{{
		open: "<｜tool▁calls▁begin｜>", close: "<｜tool▁calls▁end｜>", bodies: []body{
			&named{open: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", mid: "\n```json\n", end: "```<｜tool▁call▁end｜>"},
			&named{open: "<｜tool▁call▁begin｜>", mid: "<｜tool▁sep｜>", end: "<｜tool▁call▁end｜>"},
		},
	}}, skips: []string{"<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"}},
	{sign: "<|tool_call_begin|>", sections: []section{{
		open: "<|tool_calls_section_begin|>", close: "<|tool_calls_section_end|>", bodies: []body{&named{
			open: "<|tool_call_begin|>", mid: "<|tool_call_argument_begin|>", end: "<|tool_call_end|>", clean: kimi}},
	}, {
		open: "<|tool_call_begin|>", keep: true, close: "<|tool_calls_section_end|>", bodies: []body{&named{
			open: "<|tool_call_begin|>", mid: "<|tool_call_argument_begin|>", end: "<|tool_call_end|>", clean: kimi}},
	}}},
	{sign: "<|open|>", thinks: []think{{open: "<|open|>think<|sep|>", close: "<|close|>think<|sep|>"}},
		skips: []string{"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"},
		sections: []section{{open: "<|open|>tools<|sep|>", close: "<|close|>tools<|sep|>", bodies: []body{&tagged{
			call: tag{open: `<|open|>call tool="`, mid: `"`, end: "<|sep|>"}, callClose: "<|close|>call<|sep|>",
			param: tag{open: `<|open|>argument key="`, mid: `"`, end: "<|sep|>"}, close: "<|close|>argument<|sep|>"}}}}},
	{sign: "[TOOL_CALLS]", sections: []section{{open: "[TOOL_CALLS]", bodies: []body{
		&objects{}, &named{mid: "[ARGS]", clean: mistral, parts: "[CALL_ID]"}}}}},
	{sign: "<|tools_prefix|>", sections: []section{{open: "<|tools_prefix|>", close: "<|tools_suffix|>",
		bodies: []body{&objects{keyIsName: true}}}}},
	lfm2(family{sign: "<|tool_call_start|>", also: "List of tools: ", unless: bareStrings}, false),
	lfm2(family{sign: bareStrings}, true),
	{sign: "<|CHATBOT_TOKEN|>", skips: []string{"<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"}, sections: []section{
		{open: "Action:\n```json\n", close: "```", bodies: []body{&objects{}}},
		{open: "Action: ```json\n", close: "```", bodies: []body{&objects{}}},
	}},
	{sign: "<|START_ACTION|>", sections: []section{{open: "<|START_ACTION|>", close: "<|END_ACTION|>",
		bodies: []body{&objects{}}}},
		skips: []string{"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>"}},
	{sign: "<|tool_call>", thinks: []think{{open: "<|channel>", close: "<channel|>", anywhere: true}},
		sections: []section{{open: "<|tool_call>", close: "<tool_call|>", bodies: []body{
			&named{open: "call:", mid: "{", quote: `<|"|>`}}}}, skips: []string{"<tool_call|>", "<|tool_response>"}},
	{sign: "<start_function_call>", sections: []section{{open: "<start_function_call>", close: "<end_function_call>",
		bodies: []body{&named{open: "call:", mid: "{", quote: "<escape>"}}}}},
	{sign: "<|role_sep|>", sections: []section{{open: "<|message_sep|>\n\nfunction call<|role_sep|>\n",
		bodies: []body{&objects{}}}}},
	{sign: "<|function_call|>", sections: []section{{open: "<|function_call|>", bodies: []body{&objects{}}}}},
	{sign: "<|tool_call|>", sections: []section{{open: "<|tool_call|>", close: "</|tool_call|>", bodies: []body{&objects{}}}}},
	{sign: "<function_call>", sections: []section{{open: "<function_call>", bodies: []body{&objects{}}}}},
	{sign: "<function_calls>", unless: "atem:", sections: []section{{open: "<function_calls>", close: "</function_calls>",
		bodies: []body{&python{}}}}},
	{sign: "<|plugin|>", sections: []section{{open: "<|action_start|><|plugin|>", close: "<|action_end|>",
		bodies: []body{&objects{}}}}},
	{sign: "functools", sections: []section{{open: "functools", bodies: []body{&objects{}}}}},
	{sign: "<|tool_call:begin|>", sections: []section{{open: "<|tool_calls|>", bodies: []body{
		&named{open: "<|tool_call:begin|>", mid: "<|tool_call:args|>", end: "<|tool_call:end|>", clean: solar, parts: "<|tool_call:name|>"}}}},
		thinks: []think{{open: "<|think|>", close: "<|end|>"}},
		skips:  []string{"<|begin|>assistant", "<|content|>", "<|end|>"}},
	{sign: `<function name="`, sections: []section{{open: `<function name="`, keep: true, bodies: []body{&tagged{
		call: tag{open: `<function name="`, mid: `"`, end: ">"}, callClose: "</function>",
		param: tag{open: `<param name="`, mid: `"`, end: ">"}, close: "</param>"}}}}},
	{sign: "Here is my thought process:",
		thinks: []think{{open: "Here is my thought process:", close: "Here is my response:"}}},
	{sign: "<answer>", skips: []string{"<answer>", "</answer>"}},
	{sign: "[BEGIN FINAL RESPONSE]", thinks: []think{{open: "Here are my reasoning steps:\n", close: "[BEGIN FINAL RESPONSE]"}},
		skips: []string{"[END FINAL RESPONSE]", "<|end|>"}},
	{sign: `"parameters": `, unless: "<tool_call", sections: []section{
		{open: "{", keep: true, bare: true, bodies: []body{&objects{known: true}}},
		{open: "[", keep: true, bare: true, bodies: []body{&objects{known: true}}},
		{open: "<|python_tag|>", bodies: []body{&objects{}}},
	}},
	{sign: "<|python_start|>", sections: []section{
		{open: "<|python_start|>", close: "<|python_end|>", bodies: []body{&python{}}},
		{open: "[", keep: true, bare: true, bodies: []body{&python{known: true}}},
	}},
	{sign: "<longcat_tool_call>", thinks: []think{{open: "<longcat_think>", close: "</longcat_think>"}}, sections: []section{
		{open: "<longcat_tool_call>", close: "</longcat_tool_call>", bodies: []body{&objects{}}},
	}},
	{sign: "<|channel|>", channels: &channels{start: "<|start|>assistant", mark: "<|message|>",
		thought: [2]string{"<|channel|>analysis<|message|>", "<|end|><|start|>assistant"},
		ends:    []string{"<|end|>", "<|call|>", "<|return|>", "<|start|>assistant"}, route: harmony}},
	{sign: "atem:", channels: &channels{start: "<|start|>assistant", mark: "<|message|>",
		ends: []string{"<|eom|>", "<|eot|>", "<|start|>assistant"}, route: glimmer, calls: []section{{
			open: "<atem:function_calls>", close: "</atem:function_calls>", bodies: []body{invokes("atem:")}}}}},
	{sign: ">>>all", channels: &channels{start: ">>>", mark: "\n", ends: []string{">>>"}, route: functionary}},
}

// hunyuan is a call within a list of them.
func hunyuan(behind string) body {
	f := pairs(behind)
	f.call, f.callClose = tag{open: "<tool_call" + behind + ">"}, "</tool_call"+behind+">"
	return f
}

// kimi reads functions.NAME:INDEX.
func kimi(raw string) (name, id string) {
	id = raw
	name = strings.TrimPrefix(raw, "functions.")
	if at := strings.LastIndexByte(name, ':'); at > 0 {
		name = name[:at]
	}
	return name, id
}

// mistral reads NAME, and an id behind it in some versions.
func mistral(raw string) (name, id string) {
	name, id, _ = strings.Cut(raw, "[CALL_ID]")
	return name, id
}

// solar reads ID, a mark and NAME.
func solar(raw string) (name, id string) {
	id, name, ok := strings.Cut(raw, "<|tool_call:name|>")
	if !ok {
		return id, ""
	}
	return name, id
}

// glimmer reads the heading " to=WHOM".
func glimmer(heading string) route {
	_, to, _ := strings.Cut(heading, "to=")
	switch to = strings.TrimSpace(to); to {
	case "user", "":
		return route{}
	case "self":
		return route{thought: true}
	}
	return route{call: to}
}

// functionary reads the name of a function, or "all" for text.
func functionary(heading string) route {
	if heading = strings.TrimSpace(heading); heading == "all" {
		return route{}
	}
	return route{call: heading}
}
