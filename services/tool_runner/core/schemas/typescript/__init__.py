"""A tool's JSON schema from its TypeScript or JavaScript source, by syntax alone.

parsing   the source's tree, and the sentence where it has none
finding   the function that becomes the tool
jsdoc     what its comment says
types     types as JSON Schema
names     interfaces, types and enums of the same source
deriving  all of it together
"""
