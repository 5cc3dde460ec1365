// What every kernel needs: extensions, and memory reached by its address.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Quads { uvec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Pairs { uvec2 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Addresses { uint64_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Halves { uint16_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Bytes { uint8_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Vectors { vec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float v[]; };

// A half as a float: its bits in the low 16 of a word.
float fromHalf(uint bits) { return unpackHalf2x16(bits).x; }
