"""Names for agents whose clients give none. Pure, but for chance."""

import random

_FIRST = """
Amber Bold Brisk Calm Candid Clever Copper Crisp Curious Dapper Eager Early Fair Frank Gentle Golden Hearty Honest
Ivory Jolly Keen Kind Lively Lucid Mellow Merry Mild Nimble Patient Plucky Polite Quick Quiet Ready Silver Steady
Sunny Swift Tidy Warm Witty Zesty
"""
_SECOND = """
Alder Badger Beaver Birch Cedar Clover Comet Crane Falcon Fern Finch Fjord Gecko Grove Harbor Heron Ibis Juniper
Kestrel Lagoon Lark Linden Lynx Magpie Maple Marten Meadow Otter Pebble Plover Quartz Raven Robin Sparrow Spruce
Swallow Tern Thistle Walnut Willow Wren Yarrow
"""


def random_name() -> str:
    """Returns two words, for example "QuietOtter"; not unique."""
    return random.choice(_FIRST.split()) + random.choice(_SECOND.split())
