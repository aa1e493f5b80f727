/** The heads view. */
import type { heads as en } from "../en/heads";

export const heads: Readonly<Record<keyof typeof en, string>> = {
  "heads.read": "每条线表示左侧查询对右侧键的权重，线越粗权重越大。",
  "heads.which": "显示的头",
  "heads.all": "全部",
  "heads.one": "仅头 {head}",
  "heads.chip": "头 {head}：单击显示或隐藏，双击只显示它",
  "heads.threshold": "最小权重",
  "heads.hideFirst": "隐藏第一个键并重新归一化",
  "heads.hideSpecial": "隐藏特殊词元并重新归一化",
  "heads.hidden": "已重新归一化，隐藏了 {share} %",
  "heads.hiddenMean": "已重新归一化，隐藏了 {share} %（可见查询的平均值）",
  "heads.out": "已隐藏",
  "heads.most": "每个查询只绘制权重最大的 {count} 个键",
  "heads.range": "查询 {first}–{last}，共 {count} 个；{lines} 条线",
  "heads.none": "可见部分没有不小于 {threshold} 的权重，请降低最小权重。",
  "heads.loading": "加载中…",
  "heads.looks": "{query} 关注 {list}（头 {head}）",
  "heads.blind": "{query} 没有不小于 {threshold} 的权重（头 {head}）",
  "heads.share": "{token} {share} %",
  "heads.comma": "、",
  "heads.stage": "从查询到键的连线。上下键切换查询，左右键在它的键之间移动。",
  "heads.empty": "没有注意力：记录中没有带词元的层。",
};
