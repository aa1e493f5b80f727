/** The heads view. */
import type { heads as en } from "../en/heads";

export const heads: Readonly<Record<keyof typeof en, string>> = {
  "heads.read": "每条线是左侧查询分给右侧键的份额：越粗，份额越大。",
  "heads.which": "绘制的头",
  "heads.all": "全部",
  "heads.one": "仅头 {head}",
  "heads.chip": "头 {head}：单击显示或隐藏，双击只显示它",
  "heads.threshold": "线条下限",
  "heads.hideFirst": "隐藏第一个键并重新归一化",
  "heads.hideSpecial": "隐藏特殊词元并重新归一化",
  "heads.hidden": "已重新归一化，隐藏了 {share}%",
  "heads.hiddenMean": "已重新归一化，隐藏了 {share}%（可见查询的平均值）",
  "heads.out": "不计入",
  "heads.most": "每个查询只画最强的 {count} 个键",
  "heads.range": "查询 {first}–{last}，共 {count} 个；{lines} 条线",
  "heads.none": "可见部分没有权重达到 {threshold}：请调低下限。",
  "heads.loading": "正在获取…",
  "heads.looks": "{query} 看向 {list}（头 {head}）",
  "heads.blind": "{query} 没有达到 {threshold} 的目标（头 {head}）",
  "heads.share": "{token} {share}%",
  "heads.comma": "、",
  "heads.stage": "从查询到键的连线。上下键移动查询，左右键在它的各个键之间移动。",
  "heads.empty": "这里没有注意力：轨迹中没有带词元的层。",
};
